"""The driver of a source's run."""
