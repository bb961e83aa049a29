"""Schemas and values as recordings of Kafka Connect hold them: a value is `{tag: raw}` by its Java type."""

from __future__ import annotations

import base64
import datetime
import struct
from decimal import Decimal
from typing import Any

from airflow_connect.api.schema import DATE, Schema, Type
from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.converters.json.reader import ReadOptions, payload_reader
from airflow_connect.converters.json.schema import schema_from_json


def schema_of(node: Any) -> Schema | None:
    """The schema of a recorded one."""
    if isinstance(node, dict) and node.get("type") == "array" and node.get("items", 0) is None:
        # The selector schema of an untyped list: only Values makes it, no converter reads it.
        return Schema(Type.ARRAY, optional=node["optional"])
    return schema_from_json(node, lambda schema, default: payload_reader(schema, ReadOptions())(default))


def value_of(schema: Schema | None, tagged: Any) -> Any:
    """The Python value of a tagged one."""
    if tagged is None or isinstance(tagged, bool | str):
        return tagged
    ((tag, raw),) = tagged.items()
    if tag.startswith("int"):
        return raw
    if tag == "float32":
        return struct.unpack("<f", struct.pack("<f", float(raw)))[0]
    if tag == "float64":
        return float(raw)
    if tag in ("bytes", "bytebuffer"):
        return base64.b64decode(raw)
    if tag == "bigint":
        return int(raw)
    if tag == "decimal":
        unscaled, _, scale = raw.partition("e-")
        number = Decimal(unscaled).as_tuple()
        return Decimal((number.sign, number.digits, -int(scale)))
    if tag == "date":
        return _date_of(schema, raw)
    if tag == "list":
        element = schema.value_schema if schema else None
        return [value_of(element, item) for item in raw]
    if tag == "map":
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        return {value_of(keys, k): value_of(values, v) for k, v in raw}
    assert tag == "struct"
    assert schema is not None
    return {f.name: value_of(f.schema, raw.get(f.name)) for f in schema.fields}


def _date_of(schema: Schema | None, epoch_ms: int) -> Any:
    if schema is None:
        return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=epoch_ms)
    if schema.name == DATE:
        # A Date with a time of day cannot exist here: it stays milliseconds and then is far too many days.
        return epoch_ms // MS_PER_DAY if epoch_ms % MS_PER_DAY == 0 else epoch_ms
    return epoch_ms
