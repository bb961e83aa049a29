"""A cache for each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(folder))
    return folder
