"""Floor 3: the only package that imports confluent_kafka."""
