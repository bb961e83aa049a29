"""Executors: records to staged files."""
