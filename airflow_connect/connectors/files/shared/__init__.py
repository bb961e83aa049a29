"""What all sinks that write files share: keys and configuration for layout, rotation, formats and null values."""
