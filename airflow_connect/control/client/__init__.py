"""Clients of the control plane: the same operations over REST, and straight over the topics in Kafka."""
