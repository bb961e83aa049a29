"""Values of a field that some messages have, put together as a column of all messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.schema import Schema
from airflow_connect.converters.map_columns import map_column
from airflow_connect.converters.scan import NotPlainError


class Values(NamedTuple):
    """Values of a field.

    Attributes:
        values: of all messages that are meant, one after the other.
        counts: how many each of them has; None: one.
    """

    values: Any
    counts: NDArray[np.int64] | None = None


class Piece(NamedTuple):
    """Values of a field in some of the messages.

    Attributes:
        rows: these messages, ascending.
        found: their values.
    """

    rows: NDArray[np.intp]
    found: Values


def merged(pieces: Sequence[Piece], count: int, empty: Any, default: Callable[[], Any] | None) -> Any:
    """The column of a field that is not repeated.

    Args:
        pieces: the values that there are.
        count: messages.
        empty: an array of its type.
        default: an array with the value of messages without the field; None: they are null.

    Raises:
        NotPlainError: a message has the field twice.
    """
    if len(pieces) == 1 and len(pieces[0].rows) == count:
        return pieces[0].found.values
    if not pieces and default is None:
        return pa.nulls(count, empty.type)
    places = np.full(count, -1)
    arrays, start = [empty], 0
    for rows, (values, _) in pieces:
        if (places[rows] >= 0).any():
            raise NotPlainError
        places[rows] = np.arange(start, start + len(rows))
        arrays.append(values)
        start += len(rows)
    is_missing: NDArray[np.bool_] | None = places < 0
    if default is not None and np.any(is_missing):
        arrays.append(default())
        places[is_missing] = start
        is_missing = None
    return pa.concat_arrays(arrays).take(pa.array(places, mask=is_missing))


class Lists(NamedTuple):
    """Items of a repeated field.

    Attributes:
        items: of all messages, one after the other.
        counts: of each message.
    """

    items: Any
    counts: NDArray[np.int64]

    @property
    def offsets(self) -> Any:
        """Where the items of each message begin, and where the last ones end."""
        return pa.array(np.concatenate(([0], np.cumsum(self.counts))).astype(np.int32))


def merged_lists(pieces: Sequence[Piece], count: int, empty: Any) -> Lists:
    """The items of a repeated field; `empty` is an array of their type.

    Raises:
        NotPlainError: a message has the field in two places.
    """
    counts = np.zeros(count, np.int64)
    is_seen = np.zeros(count, np.bool_)
    owners, arrays = [], [empty]
    for rows, (values, sizes) in pieces:
        assert sizes is not None
        if is_seen[rows].any():
            raise NotPlainError
        is_seen[rows], counts[rows] = True, sizes
        owners.append(np.repeat(rows, sizes))
        arrays.append(values)
    items: Any = pa.concat_arrays(arrays)
    if len(pieces) > 1:
        items = items.take(pa.array(np.argsort(np.concatenate(owners), kind="stable")))
    return Lists(items, counts)


def list_column(lists: Lists, schema: Schema) -> Any:
    """A column of lists."""
    assert schema.value_schema is not None
    kind: Any = pa.list_(pa.field("element", lists.items.type, nullable=schema.value_schema.optional))
    return pa.ListArray.from_arrays(lists.offsets, lists.items, type=kind)


def sorted_map_column(lists: Lists, schema: Schema) -> Any:
    """A column of maps, each sorted by its keys.

    Args:
        lists: entries, structs of a key and a value.
        schema: of the maps.

    Raises:
        NotPlainError: a message has a key twice.
    """
    owners = np.repeat(np.arange(len(lists.counts)), lists.counts)
    keys, values = lists.items.flatten()
    comparable = keys.cast(pa.int8()) if pa.types.is_boolean(keys.type) else keys
    by: Any = pa.table({"owner": pa.array(owners), "key": comparable})
    order: Any = pc.sort_indices(by, sort_keys=[("owner", "ascending"), ("key", "ascending")])
    keys, values = keys.take(order), values.take(order)
    if len(keys) > 1:
        same: Any = pc.equal(keys[1:], keys[:-1])
        if (same.to_numpy(zero_copy_only=False) & (owners[1:] == owners[:-1])).any():
            raise NotPlainError
    return map_column(lists.offsets, keys, values, schema)


def union_column(columns: Sequence[Any], schema: Schema) -> Any:
    """The column of a oneof: structs of its members; null where a message has none of them.

    Raises:
        NotPlainError: a member is required, so a struct cannot lack it.
    """
    if not all(field.schema.optional for field in schema.fields):
        raise NotPlainError
    is_missing = np.logical_and.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in columns])
    made = [pa.field(field.name, column.type) for field, column in zip(schema.fields, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=made, mask=pa.array(is_missing) if is_missing.any() else None)
