"""The executor side: MANY processes. Reads Kafka, converts, lays out, encodes and stages; can never publish or commit."""
