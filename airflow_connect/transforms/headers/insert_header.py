"""InsertHeader: adds the same header to every record. KIP-145; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import NonNull
from airflow_connect.api.record import Header
from airflow_connect.api.transform import R, Transformation
from airflow_connect.converters.header_text import header_text, parse_header_text
from airflow_connect.errors import ConfigError, DataError

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

HEADER, LITERAL = "header", "value.literal"


class InsertHeader(Transformation):
    """Add the same header to every record, after its existing ones, even if one has the same name."""

    config_def = ConfigDef().define(
        ConfigKey(
            HEADER, Type.STRING, documentation="The name of the header.", validator=NonNull(),
            importance=Importance.HIGH,
        ),
        ConfigKey(
            LITERAL, Type.STRING,
            documentation="The value of the header on all records: a number, true, false, a JSON list or object, or"
            " text; its schema is guessed as SimpleHeaderConverter does.",
            validator=NonNull(), importance=Importance.HIGH,
        ),
    )  # fmt: skip

    columns_of_sinks_only: ClassVar[bool] = True
    columns_have_headers: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Read the literal, once.

        Raises:
            ConfigError: a value is missing, or the literal is nested too deeply.
        """
        parsed = self.config_def.parse(config)
        try:
            literal = parse_header_text(parsed[LITERAL])
        except DataError as error:
            raise ConfigError(
                f"The value of {LITERAL} cannot be read: {error.message}",
                suggestion="Write fewer levels of lists and maps.",
                config_path=LITERAL,
            ) from error
        self._header = Header(parsed[HEADER], literal.schema, literal.value)

    def apply(self, record: R) -> R | None:
        """The record with one header more."""
        return record.changed(headers=(*record.headers, self._header))

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """One header more, if the sink needs headers. None for a source."""
        if batch.headers is None or not batch.is_from_kafka:
            return batch if batch.is_from_kafka else None
        from airflow_connect.converters.header_columns import with_headers

        made, value = self._header, self._header.value
        text = None if value is None else header_text(made.schema, value)
        return batch.changed(headers=with_headers(batch.headers, [made.key], [text]))
