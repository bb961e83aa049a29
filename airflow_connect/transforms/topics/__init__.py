"""Transformations of topic names."""
