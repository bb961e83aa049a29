"""Layer 3: which configuration keys there are, and what the keys of one run resolve to."""
