"""Layer 7, above `runtime`: looks at connectors, topics and files. Commits and publishes nothing."""
