"""Building blocks of the derivative rules of several families of ops."""
