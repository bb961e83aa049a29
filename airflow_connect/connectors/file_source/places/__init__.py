"""Where files are: one module for each kind of place; `place` is what they have in common."""
