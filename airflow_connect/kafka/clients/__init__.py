"""How Kafka clients are configured, opened and called."""
