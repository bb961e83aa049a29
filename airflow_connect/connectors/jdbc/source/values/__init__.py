"""Columns of a result, what their values become, and times without a zone."""
