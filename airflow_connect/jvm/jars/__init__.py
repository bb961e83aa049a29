"""Jars of Maven repositories: locked, fetched once, checked."""
