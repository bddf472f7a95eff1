# Tensors of what users have: numbers, arrays, lists, other tensors, other libraries' arrays.
