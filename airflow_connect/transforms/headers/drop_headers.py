"""DropHeaders: removes headers by name. KIP-145; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.transform import R, Transformation
from airflow_connect.transforms.shared.names import Names

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

HEADERS = "headers"


class DropHeaders(Transformation):
    """Remove every header that has one of the names."""

    config_def = ConfigDef().define(
        ConfigKey(
            HEADERS, Type.LIST, documentation="The names of the headers to be removed.",
            validator=Names(empty_allowed=False), importance=Importance.HIGH,
        )
    )  # fmt: skip

    columns_of_sinks_only: ClassVar[bool] = True
    columns_have_headers: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the names."""
        self._names = frozenset(self.config_def.parse(config)[HEADERS])

    def apply(self, record: R) -> R | None:
        """The record with the remaining headers."""
        left = tuple(header for header in record.headers if header.key not in self._names)
        return record if len(left) == len(record.headers) else record.changed(headers=left)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The remaining headers, if the sink needs them. None for a source."""
        if batch.headers is None or not batch.is_from_kafka:
            return batch if batch.is_from_kafka else None
        from airflow_connect.converters.header_columns import without_headers

        return batch.changed(headers=without_headers(batch.headers, self._names))
