"""What shapes and dtypes come out of a call, also where not all extents are known."""
