# Linear recurrences along an axis.
