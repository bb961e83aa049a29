"""Kafka Connect's FileStream connectors: lines of files as a source, lines in a file as a target."""
