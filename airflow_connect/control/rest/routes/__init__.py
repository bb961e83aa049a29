"""The operations, by subject. Plain functions run in threads, because they wait for Kafka."""
