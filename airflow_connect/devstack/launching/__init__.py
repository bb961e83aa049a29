"""Fetches, starts, watches and stops a server."""
