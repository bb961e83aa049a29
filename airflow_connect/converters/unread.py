"""What a message holds and its schema does not have: converters leave it out, as Connect's do, and name it here.

A converter that can leave something out has a member `unread`. Whoever counts looks at it after each message, and
empties it (runtime/executor/unread_counts.py). A process that does not count need not do anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow_connect.api.schema import Schema

MOST_FOUND = 100
"""Maximum number of names that are kept until they are counted: an object may be used as a map with any names."""
LONGEST_NAME = 100
MORE_TEXT = "text after the JSON document"
MOST_LISTED = 20
"""Fields that a sentence names."""


class Unread:
    """The fields that were left out.

    Attributes:
        found: paths of those of the last message, or of the messages since it was emptied.
        rows: after `to_columns`, for each message of the batch with such fields: its schema, and their paths.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.found: set[str] = set()
        self.rows: list[tuple[Schema | None, frozenset[str]]] = []

    def add(self, path: str) -> None:
        """Name a field."""
        if len(self.found) < MOST_FOUND:
            self.found.add(path if len(path) <= LONGEST_NAME else f"{path[:LONGEST_NAME]}...")

    def add_members(self, node: Mapping[str, Any], known: Collection[str], path: str) -> None:
        """Name the members of an object that its schema does not have, unless they are null.

        Args:
            node: the object.
            known: the names in its schema.
            path: of the object.
        """
        for name in sorted(node.keys() - known):
            if node[name] is not None:
                self.add(joined(path, name))

    def end_row(self, schema: Schema | None) -> None:
        """A message of a batch was read: what was found belongs to it."""
        if self.found:
            self.rows.append((schema, frozenset(self.found)))
            self.found.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.found.clear()
        self.rows.clear()


def joined(path: str, name: str) -> str:
    """The path of a field: names with dots between them; elements of lists and maps have the path of the field."""
    return f"{path}.{name}" if path else name


def listed(paths: Collection[str], has_more: bool = False) -> str:
    """Fields in a sentence. `has_more`: not all of them are in `paths`."""
    more = " and more" if has_more or len(paths) > MOST_LISTED else ""
    return ", ".join(sorted(paths)[:MOST_LISTED]) + more


def schema_label(schema: Schema | None) -> str:
    """A schema in a sentence, by its name and version as far as it has them."""
    name = f" {schema.name}" if schema is not None and schema.name else ""
    version = f" (version {schema.version})" if schema is not None and schema.version is not None else ""
    return f"the schema{name}{version}"
