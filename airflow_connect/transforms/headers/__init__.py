"""Transformations of headers."""
