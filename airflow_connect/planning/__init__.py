"""Layer 6: from offsets and watermarks to the frozen ranges of a run. Pure functions: the driver queries Kafka."""
