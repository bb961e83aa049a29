"""Comparing values of Kafka Connect's data model, strictly."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from airflow_connect.api.record import ConnectRecord
from airflow_connect.api.schema import Schema


def same(left: Any, right: Any) -> bool:
    """Equality that also tells 1 from 1.0 and True, 0.0 from -0.0, and 1.0 from 1.00; a NaN equals itself."""
    if isinstance(left, ConnectRecord):
        return type(left) is type(right) and all(same(getattr(left, a), getattr(right, a)) for a in _attributes(left))
    if isinstance(left, Schema | None):
        return bool(left == right)
    if isinstance(left, Decimal | float):
        return type(left) is type(right) and repr(left) == repr(right)
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _attributes(record: ConnectRecord) -> list[str]:
    return [name for kind in type(record).__mro__ for name in getattr(kind, "__slots__", ())]
