"""autograd's modules, names and conventions, for programs that were written with autograd."""
