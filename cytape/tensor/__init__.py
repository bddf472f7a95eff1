"""Arrays with an identity: specs, tensors, variables, and who records what happens to them."""
