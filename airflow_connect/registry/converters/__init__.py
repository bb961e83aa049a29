"""Converters that use a Schema Registry."""
