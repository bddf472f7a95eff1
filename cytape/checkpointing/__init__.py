"""Which states to keep and which to compute again: schedules, in whole numbers only."""
