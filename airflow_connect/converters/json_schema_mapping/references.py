"""Where `$ref` of a JSON Schema leads: into the same document, or into one that the registry holds.

Source: RFC 6901 (JSON Pointer), RFC 3986 section 5 (base URIs), JSON Schema draft 7 section 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from airflow_connect.converters.json.text import parse_bounded
from airflow_connect.errors import SchemaError

_INDEX = re.compile("[0-9]{1,9}")


class SchemaPart(NamedTuple):
    """A part of a document: `node` is the part, `base` the URI that its own references are relative to."""

    node: Any
    base: str


class References:
    """The documents that one schema is made of.

    Every part with an `$id` or an `$anchor` is known by it; other documents are known by the name under which the
    schema's registration lists them.
    """

    def __init__(self, text: str, others: Mapping[str, str]) -> None:
        """`text` is the schema, `others` the documents it refers to, by name.

        Raises:
            SchemaError: one of them is not JSON.
        """
        self._parts: dict[str, SchemaPart] = {}
        self.root = self._add("", text)
        for name, other in others.items():
            self._add(name, other)

    def _add(self, name: str, text: str) -> SchemaPart:
        node = parse_bounded(text.encode("utf-8", "surrogatepass"))
        own_id = _id_of(node)
        root = SchemaPart(node, urljoin(name, own_id) if own_id else name)
        self._parts.setdefault(name, root)
        for part in _identified(node, name):
            self._parts.setdefault(part.base.rstrip("#"), part)
        return root

    def find(self, reference: str, base: str) -> SchemaPart:
        """The part that `reference`, written in a part with the base URI `base`, means.

        Raises:
            SchemaError: it cannot be resolved.
        """
        absolute = urljoin(base, reference)
        # Registrations list references by the text of the $ref as well as by its absolute form.
        for candidate in (absolute, reference):
            if candidate in self._parts:
                return self._parts[candidate]
            document, fragment = urldefrag(candidate)
            part = self._parts.get(document)
            if part is not None:
                found = _pointed_at(part, unquote(fragment))
                if found is not None:
                    return found
        raise SchemaError(
            f"The JSON Schema refers to {reference}, which is neither in it nor among its references.",
            code="data.schema_reference",
            suggestion="Register the schema together with the schemas that it refers to, as its references.",
        )


def _id_of(node: Any) -> str:
    found = (node.get("$id") or node.get("id")) if isinstance(node, dict) else None
    return found if isinstance(found, str) else ""


def _identified(node: Any, base: str) -> Iterator[SchemaPart]:
    """All parts that have a name of their own, with the absolute name as base."""
    if isinstance(node, list):
        for item in node:
            yield from _identified(item, base)
    if not isinstance(node, dict):
        return
    # Only `$id`: below the root a property may be called `id`.
    own_id = node.get("$id")
    if isinstance(own_id, str):
        absolute = urljoin(base, own_id)
        yield SchemaPart(node, absolute)
        base = base if own_id.startswith("#") else absolute
    anchor = node.get("$anchor")
    if isinstance(anchor, str):
        yield SchemaPart(node, f"{urldefrag(base)[0]}#{anchor}")
    for item in node.values():
        yield from _identified(item, base)


def _pointed_at(part: SchemaPart, pointer: str) -> SchemaPart | None:
    """What a JSON Pointer finds in a document; bases change at each `$id` on the way."""
    if pointer in ("", "/"):
        return part
    node, base = part
    if not pointer.startswith("/"):
        return None
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and _INDEX.fullmatch(key) and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
        own_id = node.get("$id") if isinstance(node, dict) else None
        if isinstance(own_id, str) and not own_id.startswith("#"):
            base = urljoin(base, own_id)
    return SchemaPart(node, base)
