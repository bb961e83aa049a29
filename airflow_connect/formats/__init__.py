"""Layer 4: records to file bytes. Pure: a format writes to the `ByteSink` that it is given."""
