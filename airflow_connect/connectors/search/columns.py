"""Records in columns as actions of bulk requests, without a Python object per record.

The actions are those of `documents.py`, byte for byte. None: the records must be put one by one, which also reports
what is wrong with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.api.schema import Schema, Type
from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.documents import LONGEST_ID_BYTES, OPTIONS, TIMESTAMP, is_adapted
from airflow_connect.converters.json.column_writer import column_writer
from airflow_connect.formats.columnar.json_columns import JsonColumnWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import RecordColumns, ValueColumns
    from airflow_connect.connectors.search.config import DocumentConfig

_KEY_TYPES = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING)


def has_columns(config: DocumentConfig) -> bool:
    """Whether records in columns can become actions with this configuration."""
    return not stage_without_columns(config)


def stage_without_columns(config: DocumentConfig) -> str:
    """What of a configuration only works record by record, as a noun; "": nothing does."""
    used = config.used_ids
    reasons = {
        # Requests of columns do not tell whose order matters.
        "ids of keys in a data stream": config.is_stream and keys.BY_KEY in used,
        str(keys.SearchKeys.upserts): config.upserts,
        str(keys.SearchKeys.version_header): bool(config.version_header),
        str(keys.SearchKeys.timestamp_fields): bool(config.timestamp_fields),
        "ids that the server chooses": keys.BY_SERVER in used,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def column_actions(config: DocumentConfig, batch: RecordColumns) -> pa.Array[Any] | None:
    """The actions of a batch, binary[n] with a line feed after each line; None: see above."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        documents = _documents(config, batch)
        heads = None if documents is None else _heads(config, batch)
        if documents is None or heads is None:
            return None
        actions: Any = pc.binary_join_element_wise(*heads, *documents, pa.scalar(b"", pa.binary()))
    except (pa.ArrowCapacityError, pa.ArrowInvalid):
        return None
    return actions if isinstance(actions, pa.Array) else actions.combine_chunks()


def _heads(config: DocumentConfig, batch: RecordColumns) -> list[Any] | None:
    """The first line of each action, with its line feed, in parts."""
    import pyarrow as pa

    operation = "create" if config.is_stream else "index"
    offsets = _binary(pa.array(batch.offsets).cast(pa.string()))
    if config.ids_of(batch.topic) == keys.BY_OFFSET:
        name = f"{batch.original_topic}+{batch.original_partition}+"
        return [_text(f'{{"{operation}":{{"_id":"{name}'), offsets, _text('"}}\n')]
    after = "" if config.is_stream else ',"version":'
    head = _key_heads(batch.key, f'{{"{operation}":{{"_id":', after)
    if head is None:
        return None
    return [head, _text("}}\n")] if config.is_stream else [head, offsets, _text(',"version_type":"external"}}\n')]


def _key_heads(key: ValueColumns | None, before: str, after: str) -> Any | None:
    import pyarrow.compute as pc

    if key is None or key.schema is None or key.schema.type not in _KEY_TYPES or key.values.null_count:
        return None
    values: Any = key.values
    quote = '"'
    if key.schema.type is Type.STRING:
        sizes: Any = pc.min_max(pc.binary_length(values))
        if not len(values) or sizes["min"].as_py() == 0 or sizes["max"].as_py() > LONGEST_ID_BYTES:
            return None
        if pc.sum(pc.binary_length(values)).as_py() != pc.sum(pc.utf8_length(values)).as_py():
            return None  # The record form writes other letters as they are, this one some of them as escapes.
        quote = ""
    write = column_writer(Schema(key.schema.type), OPTIONS, before + quote, quote + after)
    texts = None if write is None else write(values)
    return None if texts is None else _binary(texts)


def _documents(config: DocumentConfig, batch: RecordColumns) -> list[Any] | None:
    """The documents, with a line feed after each, in parts."""
    import pyarrow.compute as pc

    schema, values = batch.value.schema, batch.value.values
    if values.null_count or not len(values):
        return None
    if schema is None:
        lines: Any = values
    else:
        if schema.type is not Type.STRUCT or (config.has_schema(batch.topic) and is_adapted(schema)):
            return None
        lines = _writer(schema).lines(values)
        if lines is None:
            return None
    if not pc.all(pc.starts_with(lines, "{")).as_py():
        return None
    return _with_timestamps(batch, lines) if config.is_stream else [lines]


def _with_timestamps(batch: RecordColumns, lines: Any) -> list[Any] | None:
    """`with_timestamp` for each document; None if one of them may have one already, or has no members."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_plain = batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE and (batch.timestamps >= 0).all()
    has_own = pc.any(pc.match_substring(lines, TIMESTAMP)).as_py()
    is_empty = pc.any(pc.starts_with(lines, "{}")).as_py()
    if not is_plain or has_own or is_empty:
        return None
    # `binary_slice` without an end fails for an even number of lines.
    rest: Any = pc.binary_replace_slice(lines, 0, 1, b"")
    timestamps = _binary(pa.array(batch.timestamps).cast(pa.string()))
    return [_text(f'{{"{TIMESTAMP}":'), timestamps, _text(","), rest]


@lru_cache(maxsize=100)
def _writer(schema: Schema) -> JsonColumnWriter:
    return JsonColumnWriter(schema, OPTIONS)


def _text(text: str) -> Any:
    import pyarrow as pa

    return pa.scalar(text.encode(), pa.binary())


def _binary(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.binary())
