"""Determines the schema id of a written value: registered, looked up, the latest of the subject, or a given one.

Source: io.confluent.kafka.serializers.AbstractKafkaAvroSerializer.serializeImpl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from airflow_connect.errors import SchemaError
from airflow_connect.registry.client import SchemaRegistryClient, SchemaText
from airflow_connect.registry.settings import WritingSettings

FindMismatch = Callable[[SchemaText, SchemaText], str]
"""(schema to write with, schema of the value) to why the first cannot read data of the second, or ""."""


class WrittenSchema(NamedTuple):
    """The id for the prefix, and the schema that the data is written with."""

    schema_id: int
    schema: SchemaText


class SchemaIds:
    """Finds ids by the rules of `WritingSettings`; sends each query to the registry only once."""

    def __init__(self, client: SchemaRegistryClient, rules: WritingSettings, find_mismatch: FindMismatch) -> None:
        """`find_mismatch` is called with `latest.compatibility.strict` and `id.compatibility.strict`."""
        self._client = client
        self._rules = rules
        self._find_mismatch = find_mismatch
        self._known: dict[tuple[str, SchemaText], WrittenSchema] = {}

    def written(self, topic: str, record_name: str | None, schema: SchemaText) -> WrittenSchema:
        """Id and schema for a value whose schema is `schema`.

        Args:
            topic: where the value goes.
            record_name: full name of the record type, for the subject; None if the schema is not a record.
            schema: created from the Connect schema.

        Raises:
            SchemaError: it is not registered and must not be, it is incompatible, or the registry refuses it.
            DataError: the subject or the id does not exist, or the strategy needs a record.
        """
        key = (topic, schema)
        found = self._known.get(key)
        if found is None:
            while len(self._known) >= self._rules.max_cached_schemas:
                del self._known[next(iter(self._known))]
            found = self._known[key] = self._find(self._rules.subject(topic, record_name), schema)
        return found

    def _find(self, subject: str, schema: SchemaText) -> WrittenSchema:
        rules = self._rules
        if rules.auto_register:
            return WrittenSchema(self._client.register(subject, schema, rules.normalize), schema)
        if rules.use_id is not None:
            given = self._client.schema(rules.use_id)
            if rules.id_strict:
                self._check(given, schema, f"the schema {rules.use_id}", WritingSettings.id_strict.name)
            return WrittenSchema(rules.use_id, given)
        if rules.use_latest:
            latest = self._client.latest(subject)
            if rules.latest_strict:
                self._check(
                    latest.schema, schema, f"the latest schema of {subject}", WritingSettings.latest_strict.name
                )
            return WrittenSchema(latest.schema_id, latest.schema)
        registered = self._client.lookup(subject, schema, rules.normalize)
        if registered is None:
            raise SchemaError(
                f"The schema of the value is not registered under the subject {subject}, and "
                f"{WritingSettings.auto_register}=false.",
                code="data.schema_unregistered",
                suggestion=f"Register it, or set {WritingSettings.auto_register}=true"
                f" or {WritingSettings.use_latest}=true.",
            )
        return WrittenSchema(registered.schema_id, schema)

    def _check(self, target: SchemaText, schema: SchemaText, name: str, key: str) -> None:
        mismatch = self._find_mismatch(target, schema)
        if mismatch:
            raise SchemaError(
                f"The schema of the value does not fit {name}: {mismatch}.",
                code="data.schema_incompatible",
                suggestion=f"Change one of the schemas, or set {key}=false to write the value if it fits anyway.",
            )
