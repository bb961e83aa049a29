"""An engine without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SparkEngine:
    """Can be entered and left."""

    def __init__(self, worker: Mapping[str, Any]) -> None:
        self.worker = worker

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(self, *_: object) -> None:
        return None
