"""What several families of ops are written with."""
