"""Envelopes: records that sinks of Lenses and Aiven have put with their keys, headers and timestamps into one value.

Sources: docs.lenses.io, S3 sink, message envelope; Aiven-Open/cloud-storage-connectors-for-apache-kafka,
`format.output.fields` and `format.output.envelope`.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from airflow_connect.api.record import Header
from airflow_connect.api.schema import (
    BOOLEAN,
    FLOAT64,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
)
from airflow_connect.connectors.restore.keys import HEADERS, KEY, TIMESTAMP, RestoreKeys
from airflow_connect.connectors.restore.options import AIVEN, LENSES
from airflow_connect.connectors.restore.values.batches import Values
from airflow_connect.errors import DataError

_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Part = tuple[Schema | None, Any]


class Unpacked(NamedTuple):
    """A record.

    Attributes:
        value, key: schema and value.
        headers: in order.
        timestamp: milliseconds since the epoch; None: it had none, or it was not kept.
        place: partition, if the envelope tells it.
    """

    value: Part
    key: Part = (None, None)
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    place: int | None = None


class Envelope(ABC):
    """Unpacks the values of files.

    Attributes:
        name: `record.envelope`.
    """

    name: str

    def __init__(self, accepted: Collection[str]) -> None:
        """`accepted`: losses that a record may have, of `accept.loss`."""
        self._accepted = frozenset(accepted)

    def unpacked(self, values: Values) -> Iterator[Unpacked]:
        """The records of some values, in order.

        Raises:
            DataError: one is no such envelope, or lacks something that `accept.loss` does not name.
        """
        schema = values.schema
        if schema is not None and schema.type is not Type.STRUCT:
            raise _no_envelope(self.name, f"it has the type {schema.type.name}")
        schemas = None if schema is None else {field.name: field.schema for field in schema.fields}
        for value in values.values():
            record = self._record(value, schemas)
            # Null is a tombstone, whatever schema other records of the file have.
            yield record._replace(value=_null_without_schema(record.value), key=_null_without_schema(record.key))

    def _record(self, value: Any, schemas: Mapping[str, Schema] | None) -> Unpacked:
        if not isinstance(value, dict):
            raise _no_envelope(self.name, f"it is {type(value).__name__}, and no object")
        if "value" not in value:
            raise _no_envelope(self.name, f"it has no member value, but {', '.join(map(str, value)) or 'none'}")
        return self._of(value, schemas)

    @abstractmethod
    def _of(self, value: Mapping[str, Any], schemas: Mapping[str, Schema] | None) -> Unpacked:
        """The record of an object with the member `value`."""

    def _has(self, value: Mapping[str, Any], member: str, loss: str) -> bool:
        """Whether there is a member.

        Raises:
            DataError: there is not, and the loss is not accepted.
        """
        if member in value:
            return True
        if loss not in self._accepted:
            raise DataError(
                f"An envelope has no member {member}: the sink has left it out, so the record lacks its {loss}.",
                code="restore.envelope",
                suggestion=f"Add {loss} to {RestoreKeys.accepted} to copy such records without it.",
            )
        return False


class LensesEnvelope(Envelope):
    """Message envelope: key, value, headers (an object), and metadata with timestamp, topic, partition and offset."""

    name = LENSES

    def _of(self, value: Mapping[str, Any], schemas: Mapping[str, Schema] | None) -> Unpacked:
        metadata = value["metadata"] if self._has(value, "metadata", TIMESTAMP) else {}
        if not isinstance(metadata, dict) or (metadata and type(metadata.get("timestamp")) is not int):
            raise _no_envelope(self.name, "its member metadata has no number timestamp")
        headers: Any = value["headers"] if self._has(value, "headers", HEADERS) else {}
        if headers is not None and not isinstance(headers, dict):
            raise _no_envelope(self.name, "its member headers is no object")
        return Unpacked(
            value=self._part(value, "value", schemas),
            key=self._part(value, "key", schemas) if self._has(value, "key", KEY) else (None, None),
            headers=_headers((headers or {}).items(), None if schemas is None else schemas.get("headers")),
            timestamp=metadata.get("timestamp"),
            place=metadata.get("partition"),
        )

    def _part(self, value: Mapping[str, Any], member: str, schemas: Mapping[str, Schema] | None) -> Part:
        found = value[member]
        if schemas is not None:
            return schemas[member], found
        if found is None or not value.get(f"{member}IsArray"):
            return None, found
        # JSON has no bytes; the sink marks what it has encoded.
        try:
            return OPTIONAL_BYTES, base64.b64decode(found, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise _no_envelope(self.name, f"its {member} is no base64, and {member}IsArray says that it is") from error


class AivenEnvelope(Envelope):
    """`format.output.fields` with several fields: `{key, value, offset, timestamp, headers: [{key, value}]}`."""

    name = AIVEN

    def _of(self, value: Mapping[str, Any], schemas: Mapping[str, Schema] | None) -> Unpacked:
        headers: Any = value["headers"] if self._has(value, "headers", HEADERS) else ()
        if isinstance(headers, dict):  # of Avro and Parquet
            pairs = list(headers.items())
        elif headers is None or all(isinstance(one, dict) and {"key", "value"} <= one.keys() for one in headers):
            pairs = [(one["key"], one["value"]) for one in headers or ()]
        else:
            raise _no_envelope(self.name, "its headers are no list of key and value")
        return Unpacked(
            value=(None if schemas is None else schemas["value"], value["value"]),
            key=(None if schemas is None else schemas["key"], value["key"])
            if self._has(value, "key", KEY)
            else (None, None),
            headers=_headers(pairs, None if schemas is None else schemas.get("headers")),
            timestamp=self._timestamp(value["timestamp"]) if self._has(value, "timestamp", TIMESTAMP) else None,
        )

    def _timestamp(self, found: Any) -> int | None:
        """ISO text in JSON, milliseconds otherwise."""
        if found is None or type(found) is int:
            return found
        try:
            at = dt.datetime.fromisoformat(found)
            return (at - _EPOCH) // _MILLISECOND
        except (TypeError, ValueError) as error:
            raise _no_envelope(self.name, f"its timestamp {found!r} is no time such as 2026-11-27T10:00:00Z") from error


def envelope_of(name: str, accepted: Collection[str]) -> Envelope | None:
    """The envelope that `record.envelope` names; None: values are what they are."""
    found: dict[str, type[Envelope]] = {LENSES: LensesEnvelope, AIVEN: AivenEnvelope}
    return found[name](accepted) if name in found else None


def _headers(pairs: Collection[tuple[Any, Any]], schema: Schema | None) -> tuple[Header, ...]:
    """Headers with the types that the file has kept."""
    of_fields = {} if schema is None else {field.name: field.schema for field in schema.fields or ()}
    of_map = None if schema is None else schema.value_schema
    return tuple(Header(str(name), of_fields.get(name) or of_map or _schema_of(value), value) for name, value in pairs)


def _null_without_schema(part: Part) -> Part:
    return (None, None) if part[1] is None else part


def _schema_of(value: Any) -> Schema | None:
    """The schema of a value of JSON; objects and lists have none."""
    if value is None:
        return OPTIONAL_STRING
    return {str: STRING, bool: BOOLEAN, int: INT64, float: FLOAT64}.get(type(value))


def _no_envelope(name: str, reason: str) -> DataError:
    return DataError(
        f"A value is no envelope of {name}: {reason}.",
        code="restore.envelope",
        suggestion=f"Set {RestoreKeys.envelope} as the files were written, or leave it out if they hold plain values.",
    )
