"""Whether data of one Avro schema can be read with another.

Source: Avro specification 1.12, "Schema Resolution"; org.apache.avro.SchemaCompatibility.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_connect.converters.avro.named_types import AvroNode, NamedTypes
from airflow_connect.converters.avro.parsing import AvroType

_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def find_mismatch(reader: AvroType, reader_named: Iterable[AvroType], writer: AvroType) -> str:
    """Why `reader` cannot read data of `writer`, a clause that names the field, or "".

    Raises:
        SchemaError: one of them is not an Avro schema.
    """
    check = _Check(NamedTypes([*reader_named, reader]), NamedTypes([writer]))
    return check.mismatch((reader, ""), (writer, ""), "the value")


_ScopedType = tuple[AvroType, str]
"""A type and the namespace around it."""


class _Check:
    """One comparison; recursive types are compared once."""

    def __init__(self, reader: NamedTypes, writer: NamedTypes) -> None:
        self._reader = reader
        self._writer = writer
        self._compared: set[tuple[str, str]] = set()

    def mismatch(self, reader: _ScopedType, writer: _ScopedType, path: str) -> str:
        if isinstance(writer[0], list):
            return next((m for w in writer[0] if (m := self.mismatch(reader, (w, writer[1]), path))), "")
        if isinstance(reader[0], list):
            found = [self.mismatch((r, reader[1]), writer, path) for r in reader[0]]
            kind = self._writer.node(*writer).kind
            return "" if "" in found else f"{path} may have the type {kind}, which the union does not have"
        return self._nodes(self._reader.node(*reader), self._writer.node(*writer), path)

    def _nodes(self, reader: AvroNode, writer: AvroNode, path: str) -> str:
        if reader.kind != writer.kind:
            if reader.kind in _PROMOTIONS.get(writer.kind, ()):
                return ""
            return f"{path} is {writer.kind} and would be read as {reader.kind}"
        if reader.full_name:
            return self._named(reader, writer, path)
        for inner in ("items", "values"):
            if inner in reader.attributes:
                read, written = ((n.attributes[inner], n.namespace) for n in (reader, writer))
                return self.mismatch(read, written, f"{path}[]")
        return ""

    def _named(self, reader: AvroNode, writer: AvroNode, path: str) -> str:
        if (reader.full_name, writer.full_name) in self._compared:
            return ""
        self._compared.add((reader.full_name, writer.full_name))
        # As in Java, the last part of the name decides; an alias of the reader counts too.
        names = {name.rpartition(".")[2] for name in (reader.full_name, *reader.attributes.get("aliases", ()))}
        if writer.full_name.rpartition(".")[2] not in names:
            return f"{path} has the name {writer.full_name}, not {reader.full_name}"
        if reader.kind == "fixed":
            same = reader.attributes["size"] == writer.attributes["size"]
            return "" if same else f"{path} has another size"
        if reader.kind == "enum":
            missing = [s for s in writer.attributes["symbols"] if s not in reader.attributes["symbols"]]
            fits = not missing or "default" in reader.attributes
            return "" if fits else f"the enum of {path} lacks {', '.join(missing)}"
        return self._records(reader, writer, path)

    def _records(self, reader: AvroNode, writer: AvroNode, path: str) -> str:
        written = {field["name"]: field["type"] for field in writer.attributes["fields"]}
        for field in reader.attributes["fields"]:
            name = next((n for n in (field["name"], *field.get("aliases", ())) if n in written), None)
            if name is None:
                if "default" not in field:
                    return f"{path} lacks the field {field['name']}, which has no default"
                continue
            inner = f"{path}.{name}" if path != "the value" else f"the field {name}"
            found = self.mismatch((field["type"], reader.namespace), (written[name], writer.namespace), inner)
            if found:
                return found
        return ""
