"""Named Avro types: those that a schema defines, and how names in it are resolved.

Source: Avro specification 1.12, "Names": a name without a dot is in the namespace of the definition around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from airflow_connect.converters.avro.parsing import AvroType
from airflow_connect.errors import SchemaError

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))


class AvroNode(NamedTuple):
    """A type other than a union, with its attributes.

    Attributes:
        kind: `record`, `int` and so on; `error` is a record.
        attributes: the JSON object; `{}` for a reference by name.
        namespace: of names without a dot inside it.
        full_name: of a named type, else "".
    """

    kind: str
    attributes: dict[str, Any]
    namespace: str
    full_name: str


class NamedTypes:
    """All definitions of a schema and of the schemas it refers to."""

    def __init__(self, roots: Iterable[AvroType]) -> None:
        """Collect definitions.

        Raises:
            SchemaError: not an Avro schema.
        """
        self._nodes: dict[str, AvroNode] = {}
        for root in roots:
            self._collect(root, "")

    def node(self, avro_type: AvroType, namespace: str) -> AvroNode:
        """Resolve a type inside `namespace`; not for unions.

        Raises:
            SchemaError: the name is unknown.
        """
        if isinstance(avro_type, str):
            if avro_type in PRIMITIVES:
                return AvroNode(avro_type, {}, namespace, "")
            found = self._nodes.get(_full(avro_type, namespace)) or self._nodes.get(avro_type)
            if found is None:
                raise SchemaError(f"The Avro schema uses the type {avro_type[:80]}, which is not defined.")
            return found
        return self._of_object(avro_type, namespace)

    def _of_object(self, attributes: AvroType, namespace: str) -> AvroNode:
        kind = attributes.get("type") if isinstance(attributes, dict) else None
        if isinstance(kind, dict):
            return self._of_object(kind, namespace)
        if not isinstance(kind, str):
            raise SchemaError(f"The Avro schema has a part without a type: {str(attributes)[:80]}.")
        if kind in NAMED:
            name, space = str(attributes.get("name", "")), attributes.get("namespace", namespace)
            full = _full(name, space)
            return AvroNode("record" if kind == "error" else kind, attributes, full.rpartition(".")[0], full)
        if kind in PRIMITIVES or kind in ("array", "map"):
            return AvroNode(kind, attributes, namespace, "")
        return self.node(kind, namespace)

    def _collect(self, avro_type: AvroType, namespace: str) -> None:
        if isinstance(avro_type, list):
            for member in avro_type:
                self._collect(member, namespace)
            return
        if not isinstance(avro_type, dict):
            return
        kind = avro_type.get("type")
        if isinstance(kind, dict | list):
            self._collect(kind, namespace)
        elif kind in NAMED:
            node = self._of_object(avro_type, namespace)
            self._nodes[node.full_name] = node
            for field in avro_type.get("fields", ()):
                self._collect(field.get("type"), node.namespace)
        else:
            self._collect(avro_type.get("items") or avro_type.get("values"), namespace)


def _full(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
