"""Sorting, quantiles, averages and counts in bins. Imported at first use."""
