"""Date patterns, time zones and the grid of time directories."""
