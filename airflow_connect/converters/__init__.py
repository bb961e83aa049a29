"""Layer 4: converts Kafka bytes to typed values and back, with the meaning of Kafka Connect's converters."""
