"""Files of whole records, written as the sinks write them, without a server."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_connect.api.whole_record import WHOLE_RECORD
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.format import Format
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ParquetFormat

FORMATS: Mapping[str, Format] = {"avro": AvroFormat(), "parquet": ParquetFormat(), "orc": OrcFormat()}
TIME_MS = 1_700_000_000_000


def record(
    offset: int, value: bytes | None = b"v", topic: str = "t", partition: int = 0, **more: Any
) -> dict[str, Any]:
    """A whole record."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": TIME_MS + offset,
        "timestamp_type": "CreateTime",
        "key": b"k%d" % offset,
        "value": value,
        "headers": [],
        **more,
    }


class _Sink(io.BytesIO):
    def write(self, data: Any) -> int:
        return super().write(bytes(data))


def encoded(records: Sequence[Mapping[str, Any]], form: str = "parquet") -> bytes:
    """The bytes of a file."""
    sink = _Sink()
    encoder = FORMATS[form].open(sink, WHOLE_RECORD)
    encoder.append([dict(one) for one in records])
    encoder.finish()
    return sink.getvalue()


def write_file(
    root: Path, records: Sequence[Mapping[str, Any]], directory: str = "", form: str = "parquet", end: bool = True
) -> Path:
    """Write a file below `root`, the directory of the backup; returns its path. `end`: whether its name has one."""
    first, last = records[0], records[-1]
    name = f"{first['topic']}+{first['partition']}+{first['offset']:010d}"
    name += f"+{last['offset']:010d}" if end else ""
    path = root / first["topic"] / (directory or f"partition={first['partition']}") / f"{name}.{form}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(records, form))
    return path
