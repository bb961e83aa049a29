"""Kafka Connect's config and status topics: records, what they add up to, and a reader and writer of both."""
