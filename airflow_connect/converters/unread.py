"""What a message holds and its schema does not have, or cannot hold: converters leave it out or change it, and name it.

They do so as Connect's do.
A converter that can leave something out has a member `unread`. Whoever counts looks at it after each message, and
empties it (runtime/executor/unread_counts.py). A process that does not count need not do anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from airflow_connect.api.schema import Schema

MOST_FOUND = 100
"""Maximum number of names that are kept until they are counted: an object may be used as a map with any names."""
LONGEST_NAME = 100
MORE_TEXT = "text after the JSON document"
NOT_DECODED = "bytes that are not valid in the encoding of the converter"
NOT_ENCODED = "characters that the encoding of the converter lacks"
REPLACED = {NOT_DECODED: "U+FFFD", NOT_ENCODED: "question marks"}
"""What a converter of texts puts in their place, as Java does."""
MOST_LISTED = 20
"""Fields that a sentence names."""


class Changed(str):
    """The path of a value that became another one, because it does not fit its type."""

    __slots__ = ()


class UnreadRow(NamedTuple):
    """A message of a batch.

    Attributes:
        schema: of the message.
        paths: what was found in it.
        row: its place among the messages of the batch that are not null; if each message has its schema, among those
            with the same schema in a row.
    """

    schema: Schema | None
    paths: frozenset[str]
    row: int


class Unread:
    """The fields that were left out, and those whose values were changed.

    Attributes:
        found: paths of those of the last message, or of the messages since it was emptied; `Changed` is one that was
            changed.
        rows: after `to_columns`, the messages of the batch with such fields.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.found: set[str] = set()
        self.rows: list[UnreadRow] = []

    def add(self, path: str) -> None:
        """Name a field."""
        if len(self.found) < MOST_FOUND:
            self.found.add(_shortened(path))

    def add_changed(self, path: str) -> None:
        """Name a field whose value became another one; those that were left out take no room from it."""
        if len(self.found) < 2 * MOST_FOUND:
            self.found.add(Changed(_shortened(path)))

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

    def end_row(self, schema: Schema | None, row: int) -> None:
        """A message of a batch was read: what was found belongs to it.

        Args:
            schema: of the message.
            row: its place among the messages of the batch that are not null.
        """
        if self.found:
            self.rows.append(UnreadRow(schema, frozenset(self.found), row))
            self.found.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.found.clear()
        self.rows.clear()


def _shortened(path: str) -> str:
    return path if len(path) <= LONGEST_NAME else f"{path[:LONGEST_NAME]}..."


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
