"""Kafka Connect's REST API over the herder, as one ASGI application."""
