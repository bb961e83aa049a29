"""What sinks that write files share: keys and configuration of layout, rotation, formats, null values."""
