"""Floor 2: Kafka bytes to typed values and back, with the meaning of Kafka Connect's converters."""
