"""The driver of a sink's run."""
