"""What a plan finds out first: whether a table is that of the last run, and which rows no run would find."""
