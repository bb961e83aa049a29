"""Avro messages as a producer of another make writes them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from airflow_connect.converters.avro.parsing import parsed_for_writing


def message(schema_id: int, avro_type: Any, value: Any) -> bytes:
    """Magic byte, schema id, Avro data; logical values are plain numbers and bytes."""
    stream = io.BytesIO()
    stream.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(stream, parsed_for_writing(json.loads(json.dumps(avro_type))), value)
    return stream.getvalue()
