"""Keys and typed configuration of sinks that write files."""
