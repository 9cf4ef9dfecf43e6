"""torch.backends: whether float32 may round to tf32, and switches of libraries that nothing here depends on."""
