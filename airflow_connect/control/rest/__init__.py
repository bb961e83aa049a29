"""Kafka Connect's REST API over the herder, as one FastAPI application.

FastAPI routes, finds the parameters and describes everything (`/openapi.json`). What a body must be, and what an error
says, are Kafka Connect's rules: `bodies` and `answers`. FastAPI's own validation never refuses a request.
"""
