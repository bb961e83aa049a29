"""Layer 7, above `runtime`: looks at connectors, topics and files. Reads only: joins no group, commits nothing."""
