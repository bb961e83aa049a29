"""A directory does what every store must do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.stores.local.store import LocalStore
from airflow_connect.stores.store import Store
from airflow_connect.testing import StoreConformance

pytestmark = [pytest.mark.integration, pytest.mark.soak]


class TestLocalStore(StoreConformance):
    many_files: ClassVar[int] = 10_000 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 1000

    def open_store(self, target: Any) -> Store:
        return LocalStore(str(target))

    def visible(self, target: Any) -> Mapping[str, bytes]:
        found = (path for path in Path(target).rglob("*") if path.is_file() and "+tmp" not in path.parts)
        return {str(path.relative_to(target)): path.read_bytes() for path in found}

    def put_foreign(self, target: Any, key: str, data: bytes) -> None:
        path = Path(target, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        file = Path(target, "file")
        file.write_text("")
        yield LocalStore(str(file))
        yield LocalStore(f"{file}/below")
        yield LocalStore("/proc/nothing")
