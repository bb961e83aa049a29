"""Whether a Schema Registry has the schemas of a backup under their ids: keys and values contain these ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.counting import names, plural
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.registry.client import SchemaRegistryClient, SchemaText

SHOWN = 20


def findings(registry: SchemaRegistryClient, wanted: Mapping[int, SchemaText]) -> list[str]:
    """Sentences about ids that the registry does not have, or that are other schemas there.

    Raises:
        ConnectError: the registry refused, or does not answer.
    """
    missing, others = [], []
    for schema_id, schema in sorted(wanted.items()):
        try:
            there = registry.schema(schema_id)
        except DataError as error:
            if error.code != "data.schema_id":
                raise
            missing.append(schema_id)
            continue
        if _content(there) != _content(schema):
            others.append(schema_id)
    found = []
    if missing:
        what = f"{plural(len(missing), 'schema')} of the backup: id {names(missing, SHOWN)}"
        found.append(f"The Schema Registry does not have {what}. Import them under these ids.")
    if others:
        what = f"id {names(others, SHOWN)}"
        found.append(f"The Schema Registry has other schemas than the backup under {what}: readers would take these.")
    return found


def _content(schema: SchemaText) -> Any:
    """What two equal schemas have in common, whatever their white space and the order of members is."""
    references = sorted(one.name for one in schema.references)
    try:
        return schema.kind, json.loads(schema.text), references
    except ValueError:  # Protobuf
        return schema.kind, schema.text.split(), references
