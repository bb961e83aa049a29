"""JSON defaults of Avro schemas as fastavro would decode them.

Source: Avro specification 1.12, "Complex Types": bytes are text of Latin-1, a union's default is of its first type.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.converters.avro.named_types import AvroNode, NamedTypes
from airflow_connect.converters.avro.parsing import AvroType, branch_key, is_null, optional_member
from airflow_connect.errors import SchemaError

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
    "enum": (str,),
    "bytes": (str,),
    "fixed": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def plain_default(types: NamedTypes, avro_type: AvroType | AvroNode, namespace: str, given: Any) -> Any:
    """A default.

    Args:
        types: the named types.
        avro_type: the type of the default.
        namespace: in which the type is used.
        given: JSON.

    Raises:
        SchemaError: the default does not have this type.
    """
    if isinstance(avro_type, list):
        return _of_union(types, avro_type, namespace, given)
    node = avro_type if isinstance(avro_type, AvroNode) else types.node(avro_type, namespace)
    fits = isinstance(given, _JSON_TYPES.get(node.kind, ())) and (node.kind == "boolean" or not isinstance(given, bool))
    if not fits:
        raise SchemaError(f"A default of the Avro type {node.kind} is of the JSON type {type(given).__name__}.")
    if node.kind in ("bytes", "fixed"):
        return given.encode("latin-1")
    if node.kind in ("float", "double"):
        return float(given)
    if node.kind == "array":
        return [plain_default(types, node.attributes["items"], node.namespace, item) for item in given]
    if node.kind == "map":
        values = node.attributes["values"]
        return {key: plain_default(types, values, node.namespace, item) for key, item in given.items()}
    return _of_record(types, node, given) if node.kind == "record" else given


def _of_record(types: NamedTypes, node: AvroNode, given: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for field in node.attributes["fields"]:
        name = field["name"]
        if name not in given and "default" not in field:
            raise SchemaError(f"A default of the Avro record {node.full_name} lacks the field {name}.")
        made[name] = plain_default(types, field["type"], node.namespace, given.get(name, field.get("default")))
    return made


def _of_union(types: NamedTypes, members: list[AvroType], namespace: str, given: Any) -> Any:
    member = optional_member(members)
    if given is None and any(map(is_null, members)):
        return None
    if member is not None:
        return plain_default(types, member, namespace, given)
    return {branch_key(0): plain_default(types, members[0], namespace, given)}
