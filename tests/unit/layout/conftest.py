"""What Joda-Time 2.14.1 on Java 17 did: tests/data/joda_patterns.jsonl, recorded by tests/data/JodaPatterns.java."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parents[2] / "data" / "joda_patterns.jsonl"

Recorded = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """Recordings of one kind: format, illegal, zone, bucket, day, iso."""
    rows = [json.loads(line) for line in RECORDINGS.read_text(encoding="utf-8").splitlines()]

    def of_kind(kind: str) -> list[dict[str, Any]]:
        found = [row for row in rows if row["kind"] == kind]
        assert found, f"no recordings of kind {kind}"
        return found

    return of_kind
