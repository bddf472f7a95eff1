"""Updates of parts of tensors: imported when the first is made."""
