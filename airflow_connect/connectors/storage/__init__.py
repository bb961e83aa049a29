"""What all sinks that write files share: keys and configuration of layout, rotation, formats and null values."""
