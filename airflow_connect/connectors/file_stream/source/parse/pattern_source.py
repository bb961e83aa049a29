"""Turns lines into records with typed fields, with a regular expression or a grok pattern.

Patterns are Java's (`java.patterns`). There are two ways with one meaning: line by line, and Arrow's `extract_regex`
(RE2) for a column of lines. The second is used for patterns that both engines interpret alike (`common_groups`) and for
batches in which every line matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema
from airflow_connect.connectors.file_stream.source.parse.column_search import ColumnSearch
from airflow_connect.connectors.file_stream.source.parse.grok import Group, expand
from airflow_connect.connectors.file_stream.source.parse.pattern_types import OTHER_NAMES, SCHEMAS, FieldType
from airflow_connect.connectors.file_stream.source.parse.re2_patterns import common_groups, has_end_anchor
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

if TYPE_CHECKING:
    import pyarrow as pa

REGEX, GROK, TYPES = "pattern.regex", "pattern.grok", "pattern.types"
"""Names of keys, for messages."""
FAIL, DEAD_LETTER, SKIP, RAW = "fail", "dead_letter", "skip", "raw"
MESSAGE = "message"
_NOT_ASCII = 0x80
_LONG_LINE_ENDS = ("\x85".encode(), "\u2028".encode(), "\u2029".encode())


@dataclass(frozen=True, slots=True)
class PatternSource:
    """A compiled pattern and its fields.

    Attributes:
        pattern: for one line.
        groups: its groups, by field in order; a field may have several groups, of which one matches.
        types: of each field.
        schema: of the values.
        mismatch: FAIL, DEAD_LETTER, SKIP or RAW.
        optional: groups that may not take part in a match; None if `columns` cannot be used.
        search: for columns of lines; None if `columns` cannot be used.
        has_end_anchor: `$` is in the pattern.
    """

    pattern: JavaPattern
    groups: dict[str, tuple[str, ...]]
    types: tuple[FieldType, ...]
    schema: Schema
    mismatch: str
    optional: frozenset[str] | None
    search: ColumnSearch | None
    has_end_anchor: bool

    @classmethod
    def of(
        cls, *, regex: str, grok: str, definitions: str, types: Sequence[str], mismatch: str, schema_name: str
    ) -> PatternSource:
        """A pattern from the keys `pattern.*`; either `regex` or `grok`.

        Raises:
            ConfigError: the expression is invalid or has no fields, or a type is wrong.
        """
        if grok:
            expression, found = expand(grok, definitions)
        else:
            expression = regex
            found = tuple(Group(name, name, "") for name in _compiled(regex, REGEX).names)
        pattern = _compiled(expression, GROK if grok else REGEX)
        if not found:
            key = GROK if grok else REGEX
            raise ConfigError(
                f"The pattern of {key} has no fields.",
                config_path=key,
                suggestion="Name the captured values: %{NUMBER:size:int} in grok, (?<size>\\d+) in a regular"
                " expression.",
            )
        groups: dict[str, tuple[str, ...]] = {}
        for group in found:
            groups[group.field] = (*groups.get(group.field, ()), group.group)
        typed = _types(found, types)
        members = [(each.field, SCHEMAS[each.type]) for each in typed]
        if mismatch == RAW and MESSAGE not in groups:
            members.append((MESSAGE, schemas.OPTIONAL_STRING))
        schema = schemas.struct(*members, name=schema_name or None)
        optional = common_groups(pattern) if all(len(names) == 1 for names in groups.values()) else None
        search = None if optional is None else ColumnSearch(pattern)
        return cls(pattern, groups, typed, schema, mismatch, optional, search, has_end_anchor(pattern.root))

    def value(self, line: str) -> dict[str, Any]:
        """The fields of a line.

        Raises:
            ValueError: the line does not match, or a field does not have its type.
        """
        found = self.pattern.search(line)
        if found is None:
            raise ValueError("the pattern does not match")
        value = {}
        for each in self.types:
            texts = (found[group] for group in self.groups[each.field])
            value[each.field] = each.value(next((text for text in texts if text is not None), None))
        if len(self.schema.fields) > len(self.types):
            value[MESSAGE] = None
        return value

    def raw(self, line: str) -> dict[str, Any]:
        """The value for a line that does not match, with `pattern.mismatch=raw`."""
        return {member.name: line if member.name == MESSAGE else None for member in self.schema.fields}

    def columns(self, lines: pa.StringArray) -> pa.Array[Any] | None:
        """`value` of every line as a struct column; None if each line needs `value`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.optional is None or self.search is None or not len(lines):
            return None
        if self.has_end_anchor and _has_line_ends(lines):
            return None
        found = self.search.groups(lines)
        if found is None:
            return None
        arrays: list[Any] = []
        for each in self.types:
            (group,) = self.groups[each.field]
            texts: Any = found[group]
            if group in self.optional:
                texts = pc.if_else(pc.equal(texts, pa.scalar("")), pa.scalar(None, pa.string()), texts)
            column = each.column(texts)
            if column is None:
                return None
            arrays.append(column)
        if len(self.schema.fields) > len(self.types):
            arrays.append(pa.nulls(len(lines), pa.string()))
        members = [pa.field(f.name, a.type) for f, a in zip(self.schema.fields, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=members)


def _compiled(expression: str, key: str) -> JavaPattern:
    try:
        return compile_java_pattern(expression, python_names=True)
    except PatternError as error:
        raise ConfigError(
            f"{key} is not a valid regular expression: {error}.", config_path=key, suggestion="Correct the pattern."
        ) from error


def _types(groups: Sequence[Group], given: Sequence[str]) -> tuple[FieldType, ...]:
    types: dict[str, str] = {}
    for group in groups:
        types[group.field] = group.type or types.get(group.field, "")
    for pair in given:
        field, colon, kind = pair.rpartition(":")
        if not colon or field not in types:
            raise ConfigError(
                f"{TYPES} contains {pair!r}, which does not name a field of the pattern.",
                config_path=TYPES,
                suggestion=f"Write name:type; the fields are {', '.join(types)}.",
            )
        types[field] = kind
    found = []
    for field, kind in types.items():
        name = OTHER_NAMES.get(kind.lower(), kind.lower())
        if name not in SCHEMAS:
            raise ConfigError(
                f"Field {field} has the unknown type {kind!r}.",
                config_path=TYPES,
                suggestion=f"Use one of {', '.join(SCHEMAS)}.",
            )
        found.append(FieldType(field, name))
    return tuple(found)


def _has_line_ends(lines: pa.StringArray) -> bool:
    """Whether a line may contain a character that Java treats as a line end; `$` differs there."""
    import numpy as np

    offsets: Any = lines.buffers()[1]
    data: Any = lines.buffers()[2]
    bounds = np.frombuffer(offsets, np.int32)
    first, last = int(bounds[lines.offset]), int(bounds[lines.offset + len(lines)])
    if first == last:
        return False
    text = np.frombuffer(data, np.uint8, last - first, first)
    if (text == ord("\n")).any() or (text == ord("\r")).any():
        return True
    content = text.tobytes() if (text >= _NOT_ASCII).any() else b""
    return any(end in content for end in _LONG_LINE_ENDS)
