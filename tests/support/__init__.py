"""Helpers of the tests: data in topics and buckets, and looking at what came of it."""
