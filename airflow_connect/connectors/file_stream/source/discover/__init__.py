"""Step 1: which files exist, and which task reads which."""
