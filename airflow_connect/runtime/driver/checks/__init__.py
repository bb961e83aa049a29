"""What the driver checks about a configuration before a run."""
