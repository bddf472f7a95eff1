# Derivatives of products along lines of arrays in C order, by division or by recurrences.
