"""Benchmarks with few records, which are no measurements: they show that every program still copies."""

from __future__ import annotations

from tests.support.session.searching import IS_SOAK

collect_ignore = [] if IS_SOAK else ["test_peers.py"]
"""It takes more than a minute, and has jars to fetch."""
