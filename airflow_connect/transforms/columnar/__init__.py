"""Transformations of whole columns."""
