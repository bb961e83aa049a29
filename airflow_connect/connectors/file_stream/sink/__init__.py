"""FileStreamSink: one line per record, appended to a file exactly once, or written to standard output."""
