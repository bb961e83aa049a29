"""Conversions from fastavro's values to Connect values; composed once for each schema.

Source: io.confluent.connect.avro.AvroData.toConnectData.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from airflow_connect.converters.map_entries import map_of_entries
from airflow_connect.converters.value_transform import Transform
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import decimal_of_bytes


def optional_change(change: Transform | None) -> Transform | None:
    """As `change`, but null stays null."""
    if change is None:
        return None
    return lambda value: None if value is None else change(value)


def change_of_decimal(scale: int) -> Transform:
    """Unscaled big-endian two's complement bytes to a Decimal."""

    def to_decimal(value: bytes) -> Decimal:
        return decimal_of_bytes(value, scale)

    return to_decimal


def change_of_integer(bits: int) -> Transform:
    """An Avro int to INT8, INT16 or INT32. Confluent's converter cuts off the higher bits, as Java's `byteValue`."""
    half = 1 << (bits - 1)

    def to_integer(value: int) -> int:
        if -half <= value < half:
            return value
        raise DataError(
            f"An Avro int is {value}, beyond the {bits} bits of its type.",
            code="data.avro",
            suggestion="The message was written with a schema other than the one it names, or its schema has a"
            " connect.type that is too small.",
        )

    return to_integer


def change_of_record(changes: Mapping[str, Transform]) -> Transform:
    """Changes some fields of a record."""
    pairs = tuple(changes.items())

    def change(value: dict[str, Any]) -> dict[str, Any]:
        # fastavro created the dict, and nothing else refers to it.
        for name, of_field in pairs:
            value[name] = of_field(value[name])
        return value

    return change


def change_of_array(item: Transform) -> Transform:
    """Changes the elements."""
    return lambda value: [item(element) for element in value]


def change_of_map(item: Transform) -> Transform:
    """Changes the values."""
    return lambda value: {key: item(element) for key, element in value.items()}


def change_of_map_entries(key: Transform | None, item: Transform | None) -> Transform:
    """An array of {key, value} to a map."""

    def change(value: Sequence[dict[str, Any]]) -> dict[Any, Any]:
        keys = (entry["key"] if key is None else key(entry["key"]) for entry in value)
        items = (entry["value"] if item is None else item(entry["value"]) for entry in value)
        return map_of_entries(zip(keys, items, strict=True), "an array")

    return change


def change_of_single_branch(change: Transform | None) -> Transform:
    """A value of a union of one type to that type."""
    if change is None:
        return lambda value: next(iter(value.values()))
    return lambda value: change(next(iter(value.values())))


def change_of_union(names: Sequence[str], branches: Mapping[str, tuple[str, Transform | None]]) -> Transform:
    """`{branch: value}` to a struct in which the branch's field is set.

    Args:
        names: fields of the struct.
        branches: branch to its field and the change of its values.
    """
    empty = dict.fromkeys(names)

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        ((branch, chosen),) = value.items()
        name, of_branch = branches[branch]
        made: dict[str, Any] = dict(empty)
        made[name] = chosen if of_branch is None else of_branch(chosen)
        return made

    return change
