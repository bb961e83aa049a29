"""Directories: temporary files are staged, and renaming them publishes."""
