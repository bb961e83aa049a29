"""Layer 3: what a configuration is, which keys there are, and what the keys of one run resolve to."""
