"""Columns to file formats."""
