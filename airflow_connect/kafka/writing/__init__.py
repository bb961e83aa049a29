"""Writing records: with or without transactions, and what happens to refused ones."""
