"""Offsets of sources: in topics, and in the files of Kafka Connect's standalone mode."""
