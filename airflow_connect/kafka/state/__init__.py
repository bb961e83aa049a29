"""Topics that hold state: Kafka Connect's and our own."""
