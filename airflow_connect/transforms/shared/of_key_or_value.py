"""Transformations that come in two variants, for the key and for the value of a record.

Connect's names are `Cast$Key` and `Cast$Value`; here they are nested classes that add one of the two classes below to
the shared implementation:

    class _Cast(OfKeyOrValue): ...

    class Cast:
        class Key(OfKey, _Cast): ...
        class Value(OfValue, _Cast): ...
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigKey, Importance, Type
from airflow_connect.api.transform import R, Transformation

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns, ValueColumns
    from airflow_connect.api.record import ConnectRecord
    from airflow_connect.api.schema import Schema

REPLACE_NULL_WITH_DEFAULT = "replace.null.with.default"


def replace_null_with_default() -> ConfigKey:
    """The key of KIP-1040, which most transformations have."""
    return ConfigKey(
        REPLACE_NULL_WITH_DEFAULT,
        Type.BOOLEAN,
        True,
        "Whether to replace fields that have a default value and that are null to the default value. When set to "
        "true, the default value is used, otherwise null is used.",
        importance=Importance.MEDIUM,
    )


class OfKeyOrValue(Transformation):
    """Reaches the one part of a record that the variant is about."""

    @abstractmethod
    def schema_of(self, record: ConnectRecord) -> Schema | None:
        """Schema of the part; None is schemaless."""

    @abstractmethod
    def value_of(self, record: ConnectRecord) -> Any:
        """The part itself."""

    @abstractmethod
    def with_part(self, record: R, schema: Schema | None, value: Any) -> R:
        """A copy of the record with another schema and value in the part."""

    @abstractmethod
    def columns_of(self, batch: RecordColumns) -> ValueColumns | None:
        """The part of a batch; None when it was not read."""

    @abstractmethod
    def with_columns(self, batch: RecordColumns, part: ValueColumns) -> RecordColumns:
        """A copy of the batch with another part of the same length."""


class OfKey(OfKeyOrValue):
    """Makes a transformation one of the record's key."""

    def schema_of(self, record: ConnectRecord) -> Schema | None:
        """The key's schema."""
        return record.key_schema

    def value_of(self, record: ConnectRecord) -> Any:
        """The key."""
        return record.key

    def with_part(self, record: R, schema: Schema | None, value: Any) -> R:
        """Another key."""
        return record.changed(key_schema=schema, key=value)

    def columns_of(self, batch: RecordColumns) -> ValueColumns | None:
        """The keys."""
        return batch.key

    def with_columns(self, batch: RecordColumns, part: ValueColumns) -> RecordColumns:
        """Other keys."""
        return batch.changed(key=part)


class OfValue(OfKeyOrValue):
    """Makes a transformation one of the record's value."""

    def schema_of(self, record: ConnectRecord) -> Schema | None:
        """The value's schema."""
        return record.value_schema

    def value_of(self, record: ConnectRecord) -> Any:
        """The value."""
        return record.value

    def with_part(self, record: R, schema: Schema | None, value: Any) -> R:
        """Another value."""
        return record.changed(value_schema=schema, value=value)

    def columns_of(self, batch: RecordColumns) -> ValueColumns | None:
        """The values."""
        return batch.value

    def with_columns(self, batch: RecordColumns, part: ValueColumns) -> RecordColumns:
        """Other values."""
        return batch.changed(value=part)
