"""Lines as records with typed fields, by a regular expression or a grok pattern.

Two ways, one meaning: Python's `re` for each line, and Arrow's `extract_regex` (RE2) for a column of lines. The second
is used for patterns in which both engines mean the same (`common_groups`) and for batches in which every line matches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.schema import Schema
from airflow_connect.connectors.file_source import keys
from airflow_connect.connectors.file_source.column_search import ColumnSearch
from airflow_connect.connectors.file_source.grok import Group, expand
from airflow_connect.connectors.file_source.pattern_types import OTHER_NAMES, SCHEMAS, FieldType

if TYPE_CHECKING:
    import pyarrow as pa

FAIL, DEAD_LETTER, SKIP, RAW = "fail", "dead_letter", "skip", "raw"
MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class PatternSource:
    """A pattern, ready to be searched.

    Attributes:
        pattern: for one line.
        groups: groups of it, by field in order; a field may have several, of which one matches.
        types: of each field.
        schema: of the values.
        mismatch: FAIL, DEAD_LETTER, SKIP or RAW.
        optional: groups that may be without a find; None when `columns` cannot be used.
        search: for columns of lines.
    """

    pattern: re.Pattern[str]
    groups: dict[str, tuple[str, ...]]
    types: tuple[FieldType, ...]
    schema: Schema
    mismatch: str
    optional: frozenset[str] | None
    search: ColumnSearch

    @classmethod
    def of(
        cls, *, regex: str, grok: str, definitions: str, types: Sequence[str], mismatch: str, schema_name: str
    ) -> PatternSource:
        """A pattern from what the keys `pattern.*` say; either `regex` or `grok`.

        Raises:
            ConfigError: it is no expression, has no fields, or types are wrong.
        """
        if grok:
            expression, found = expand(grok, definitions)
        else:
            expression = regex
            found = tuple(Group(name, name, "") for name in _compiled(regex, keys.REGEX).groupindex)
        pattern = _compiled(expression, keys.GROK if grok else keys.REGEX)
        if not found:
            key = keys.GROK if grok else keys.REGEX
            raise ConfigError(
                f"The pattern of {key} has no fields.",
                config_path=key,
                suggestion="Name what it finds: %{NUMBER:size:int} in grok, (?P<size>\\d+) in a regular expression.",
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
        return cls(pattern, groups, typed, schema, mismatch, optional, ColumnSearch(pattern))

    def value(self, line: str) -> dict[str, Any]:
        """The fields of a line.

        Raises:
            ValueError: the pattern is not found, or a field is not of its type.
        """
        found = self.pattern.search(line)
        if found is None:
            raise ValueError("the pattern is not found")
        value = {}
        for each in self.types:
            texts = (found[group] for group in self.groups[each.field])
            value[each.field] = each.value(next((text for text in texts if text is not None), None))
        if len(self.schema.fields) > len(self.types):
            value[MESSAGE] = None
        return value

    def raw(self, line: str) -> dict[str, Any]:
        """What stands for a line without a find with `pattern.mismatch=raw`."""
        return {member.name: line if member.name == MESSAGE else None for member in self.schema.fields}

    def columns(self, lines: pa.StringArray) -> pa.Array[Any] | None:
        """`value` of every line as a struct column; None when `value` has to look at each."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.optional is None or not len(lines) or _has_odd_blanks(lines):
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


def _compiled(expression: str, key: str) -> re.Pattern[str]:
    try:
        # As in Java, where these configurations come from: \d, \w, \s and \b know ASCII only.
        return re.compile(expression, re.ASCII)
    except (re.error, ValueError) as error:
        raise ConfigError(
            f"{key} is no regular expression: {error}.", config_path=key, suggestion="Correct the pattern."
        ) from error


def _types(groups: Sequence[Group], given: Sequence[str]) -> tuple[FieldType, ...]:
    types: dict[str, str] = {}
    for group in groups:
        types[group.field] = group.type or types.get(group.field, "")
    for pair in given:
        field, colon, kind = pair.rpartition(":")
        if not colon or field not in types:
            raise ConfigError(
                f"{keys.PATTERN_TYPES} has {pair!r}, which names no field of the pattern.",
                config_path=keys.PATTERN_TYPES,
                suggestion=f"Write name:type; the fields are {', '.join(types)}.",
            )
        types[field] = kind
    found = []
    for field, kind in types.items():
        name = OTHER_NAMES.get(kind.lower(), kind.lower())
        if name not in SCHEMAS:
            raise ConfigError(
                f"Field {field} has the type {kind!r}, which is none.",
                config_path=keys.PATTERN_TYPES,
                suggestion=f"Use one of {', '.join(SCHEMAS)}.",
            )
        found.append(FieldType(field, name))
    return tuple(found)


def _has_odd_blanks(lines: pa.StringArray) -> bool:
    r"""Whether a vertical tab is in there, which `\s` means in Python only, or a line feed, with which `$` differs."""
    import numpy as np

    offsets: Any = lines.buffers()[1]
    data: Any = lines.buffers()[2]
    bounds = np.frombuffer(offsets, np.int32)
    first, last = int(bounds[lines.offset]), int(bounds[lines.offset + len(lines)])
    if first == last:
        return False
    text = np.frombuffer(data, np.uint8, last - first, first)
    return bool((text == ord("\n")).any() or (text == ord("\v")).any())


def common_groups(pattern: re.Pattern[str]) -> frozenset[str] | None:
    """The groups that may be without a find, of a pattern with which Python's `re` and RE2 find the same; else None.

    RE2 cannot tell a group without a find from an empty one: such a group must not be able to find nothing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parser: Any = import_module("re._parser")
    tree = parser.parse(pattern.pattern, re.ASCII)
    if tree.state.flags & ~re.ASCII or tree.state.groups - 1 != len(tree.state.groupdict):
        return None
    walk = _Walk()
    if not walk.is_common(tree, _ALWAYS):
        return None
    try:
        pc.extract_regex(pa.array([""], pa.string()), pattern.pattern)
    except pa.ArrowInvalid:
        return None
    return frozenset(name for name, number in pattern.groupindex.items() if number in walk.optional)


_PLAIN = frozenset({"LITERAL", "NOT_LITERAL", "ANY"})
_MOST_REPEATS = 1000
_ALWAYS, _MAYBE, _REPEATED = range(3)
"""How often a part of a pattern takes part in a match."""


class _Walk:
    """Looks at the parts of a pattern; `optional` are the numbers of groups that need not take part."""

    def __init__(self) -> None:
        self.optional: set[int] = set()

    def is_common(self, tree: Any, how_often: int) -> bool:
        return all(self._is_common_node(str(kind), value, how_often) for kind, value in tree)

    def _is_common_node(self, kind: str, value: Any, how_often: int) -> bool:
        if kind in _PLAIN:
            return True
        if kind == "IN":
            return all(str(item) in ("NEGATE", "LITERAL", "RANGE", "CATEGORY") for item, _ in value)
        if kind == "AT":
            return str(value) in ("AT_BEGINNING", "AT_END", "AT_BOUNDARY")
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, body = value
            return self._is_common_repeat(least, most, body, how_often)
        if kind == "BRANCH":
            return all(self.is_common(branch, max(how_often, _MAYBE)) for branch in value[1])
        if kind == "SUBPATTERN":
            group, added, removed, body = value
            if group is not None and not self._is_common_group(group, body, how_often):
                return False
            return not added and not removed and self.is_common(body, how_often)
        return False

    def _is_common_repeat(self, least: int, most: Any, body: Any, how_often: int) -> bool:
        endless = str(most) == "MAXREPEAT"
        if least > _MOST_REPEATS or not (endless or most <= _MOST_REPEATS):
            return False
        # What may be empty is repeated differently by the two.
        if body.getwidth()[0] == 0:
            return False
        return self.is_common(body, max(how_often, _REPEATED if endless or most > 1 else _MAYBE))

    def _is_common_group(self, group: int, body: Any, how_often: int) -> bool:
        if how_often == _MAYBE:
            self.optional.add(group)
            return bool(body.getwidth()[0])
        return how_often == _ALWAYS
