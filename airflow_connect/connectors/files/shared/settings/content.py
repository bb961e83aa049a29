"""Keys about the contents of files, wherever the files are. Source: Confluent's S3 sink (S3SinkConnectorConfig)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import Problem
from airflow_connect.api.config.plugins import PluginKind, PluginRef
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig
from airflow_connect.api.config.validators import CaseInsensitiveValidString, EnumString, NonEmptyString, Range
from airflow_connect.api.config.values import coerce_json
from airflow_connect.connectors.files.shared.settings.config import StorageConfig, plain_directory
from airflow_connect.errors import ConfigError

WRITE_NULLS = "write"
AVRO_FORMAT = "io.confluent.connect.s3.format.avro.AvroFormat"
_RAW_BYTES = "airflow_connect.formats.raw_bytes:ByteArrayFormat"
_UNCOMPRESSED_ELSEWHERE = (
    "airflow_connect.formats.avro:AvroFormat",
    "airflow_connect.formats.parquet:ParquetFormat",
)
_S3, _FILES = KeyGroup("S3"), KeyGroup("Keys and headers")


def tombstone_directory(path: str, *, in_file_system: bool = False) -> str:
    """The directory of null values, "" if the sink has none.

    Raises:
        ConfigError: it leads elsewhere, or is nothing but slashes in a file system.
    """
    plain = plain_directory(path) if in_file_system else path
    if {".", ".."} & set(path.split("/")) or (path and not plain):
        raise ConfigError(
            f"tombstone.encoded.partition={path!r} does not name a directory.",
            code="layout.bad_tombstone_directory",
            config_path="tombstone.encoded.partition",
            suggestion="Write a name, such as tombstone, without '.' or '..' as a part.",
        )
    return plain


class ContentConfig(TypedConfig):
    """How records become bytes, and what happens to records whose value is null."""

    compression = _S3.low.choice(
        "s3.compression.type",
        "none",
        ("none", "gzip"),
        "Compression of whole files, for JsonFormat and ByteArrayFormat.",
    )
    compression_level = _S3.low.integer(
        "s3.compression.level", -1, "Level of that compression: 0 to 9, or -1 for its default.", Range(-1, 9)
    )
    json_decimal_format = _S3.low.text(
        "json.decimal.format",
        "BASE64",
        "How JsonFormat writes Decimal values: `BASE64` or `NUMERIC`.",
        CaseInsensitiveValidString("BASE64", "NUMERIC"),
    ).to(str.upper)
    bytes_extension = _S3.low.text(
        "format.bytearray.extension", ".bin", "Extension of the files of ByteArrayFormat, with dot."
    )
    separator = _S3.low.text(
        "format.bytearray.separator",
        None,
        "Text after every record in files of ByteArrayFormat, blanks included; a newline if it is not set.",
    )
    on_null = _S3.low.text(
        "behavior.on.null.values",
        "fail",
        "Records whose value is null: `fail` fails the run, `ignore` skips them, `write` writes their keys and"
        " headers below tombstone.encoded.partition.",
        EnumString("ignore", "fail", "write"),
    ).to(str.lower)
    reports_nulls = _S3.low.boolean(
        "report.null.values.to.dlq", True, "Whether records skipped by `ignore` go to the dead letter queue."
    )
    tombstone_directory = _S3.low.text(
        "tombstone.encoded.partition",
        "tombstone",
        "Directory of records with null values for `write`.",
        NonEmptyString(),
    ).to(tombstone_directory)
    stores_keys = _FILES.low.boolean("store.kafka.keys", False, "Whether keys are written, to separate files.")
    stores_headers = _FILES.low.boolean("store.kafka.headers", False, "Whether headers are written, to separate files.")
    keys_class = _FILES.low.plugin("keys.format.class", AVRO_FORMAT, "Format of key files.", PluginKind.FORMAT)
    headers_class = _FILES.low.plugin(
        "headers.format.class",
        AVRO_FORMAT,
        "Format of header files; ByteArrayFormat cannot hold headers.",
        PluginKind.FORMAT,
    )

    @property
    def key_format(self) -> PluginRef | None:
        """Format of key files; None: there are none."""
        return self.keys_class if self.stores_keys else None

    @property
    def header_format(self) -> PluginRef | None:
        """Format of header files; None: there are none."""
        return self.headers_class if self.stores_headers else None

    @property
    def bytes_separator(self) -> bytes:
        """Bytes after every record of a raw bytes file."""
        # Blanks are significant in a separator, but parsing has trimmed them.
        key = Keys.separator.name
        return (coerce_json(key, self.raw[key]) or "").encode() if key in self.raw else b"\n"

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.compression, StorageConfig.value_format), _compression_needs_a_plain_format
        yield (cls.on_null, cls.stores_keys), _writing_nulls_needs_keys
        yield (cls.headers_class, cls.stores_headers), _headers_are_no_raw_bytes
        yield (StorageConfig.stores_records, cls.stores_keys, cls.stores_headers), _records_have_keys_and_headers


Keys = ContentConfig


def _compression_needs_a_plain_format(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    chosen, storage = Keys.compression.of(parsed), StorageConfig
    if chosen != "none" and storage.value_format.of(parsed).path in _UNCOMPRESSED_ELSEWHERE:
        yield Problem(
            Keys.compression.name,
            f"{Keys.compression}={chosen} applies to JsonFormat and ByteArrayFormat only",
            f"Remove it; Avro files are compressed by {storage.avro_codec}, Parquet files by {storage.parquet_codec}.",
        )


def _writing_nulls_needs_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.on_null.of(parsed) == WRITE_NULLS and not Keys.stores_keys.of(parsed):
        yield Problem(
            Keys.on_null.name,
            f"{Keys.on_null}=write writes the keys of records whose value is null, but {Keys.stores_keys} is false",
            f"Set {Keys.stores_keys}=true, or {Keys.on_null} to ignore or fail.",
        )


def _headers_are_no_raw_bytes(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.stores_headers.of(parsed) and Keys.headers_class.of(parsed).path == _RAW_BYTES:
        yield Problem(
            Keys.headers_class.name,
            f"{Keys.headers_class} is ByteArrayFormat, which cannot hold the names and values of headers",
            "Use JsonFormat, AvroFormat or ParquetFormat for headers.",
        )


def _records_have_keys_and_headers(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    for key in (Keys.stores_keys, Keys.stores_headers):
        if StorageConfig.stores_records.of(parsed) and key.of(parsed):
            yield Problem(
                key.name,
                f"{StorageConfig.stores_records}=true stores keys and headers in each record",
                f"Remove {key}.",
            )
