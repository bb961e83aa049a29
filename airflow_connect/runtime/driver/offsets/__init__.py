"""Offsets that people change, and ranges that they choose: positions in a log, set, reset, replay."""
