"""Statements: the text of each, by dialect. Names are quoted, values are always parameters."""
