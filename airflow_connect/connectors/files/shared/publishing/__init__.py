"""Driver: published files, markers, complete directories."""
