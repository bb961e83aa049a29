"""The conformance suites."""
