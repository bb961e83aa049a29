"""Offsets of consumer groups after a restore: translated to the offsets of the restored topics, and set."""
