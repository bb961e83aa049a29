"""The keys that every sink, source, worker and transformation has."""
