"""Reads a table or a query: its statements, batches of rows, ranges that have changed, one state for many tasks."""
