"""Parts of derivative rules that several families of ops use."""
