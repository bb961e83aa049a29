"""The driver: ONE process per run. Fences, plans, starts Spark, audits, writes the manifest, publishes, commits."""
