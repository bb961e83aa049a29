"""Transformations of fields and values."""
