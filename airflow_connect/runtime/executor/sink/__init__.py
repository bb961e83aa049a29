"""The task of a sink: the loop from reader to sink, in records or in columns."""
