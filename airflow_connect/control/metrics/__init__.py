"""Metrics of a worker with Kafka Connect's names, for Prometheus and as JSON in the form of JMX."""
