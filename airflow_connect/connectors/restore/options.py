"""Formats of files, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass

AVRO, PARQUET, ORC, JSON, BYTES, TEXT, CSV = "avro", "parquet", "orc", "json", "bytes", "text", "csv"
FORMATS = {
    AVRO: ("AvroFormat", "CloudStorageAvroFormat"),
    PARQUET: ("ParquetFormat", "CloudStorageParquetFormat"),
    ORC: ("OrcFormat",),
    JSON: ("JsonFormat", "CloudStorageJsonFormat"),
    BYTES: ("ByteArrayFormat", "CloudStorageByteArrayFormat"),
    TEXT: ("StringFormat",),
    CSV: ("CsvFormat", "CloudStorageCsvFormat"),
}
"""Names of classes without their packages, which differ between Confluent's connectors."""
NO_ENVELOPE, LENSES, AIVEN = "none", "lenses", "aiven"
MILLISECONDS, INTEGERS = "milliseconds", "integers"
GZIP, ZSTD = ".gz", ".zst"
SEPARATED = (BYTES, TEXT)
"""Formats in which a value that contains the separator looks like several."""


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV files are written: Confluent's keys with the same names, after `csv.`."""

    separator: str = ","
    quote: str = '"'
    skip_lines: int = 0
    first_row_as_header: bool = False
    charset: str = "UTF-8"
    empty_is_null: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        json_schemas: `format.json.schema.enable`.
        separator: `format.bytearray.separator`.
        timestamps: MILLISECONDS or INTEGERS, for timestamps of Parquet that are finer than milliseconds.
        csv: how CSV files are written.
    """

    json_schemas: bool = False
    separator: bytes = b"\n"
    timestamps: str = MILLISECONDS
    csv: CsvOptions = CsvOptions()
