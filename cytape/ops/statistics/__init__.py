"""Order statistics, averages, counts: imported when one of them is called first."""
