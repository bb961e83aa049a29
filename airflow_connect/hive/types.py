"""Hive's types: their text, both ways, and the type that holds the values of two of them.

Source: Hive's TypeInfoUtils.TypeInfoParser (grammar), TypeInfoUtils.implicitConvertible (widening).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from airflow_connect.errors import SchemaError

ARRAY, MAP, STRUCT, DECIMAL = "array", "map", "struct", "decimal"
_WIDER = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Each type can hold the values of the types before it, as in Connect's own schema projection (SchemaProjector)."""
_SYNONYMS = {"integer": "int", "numeric": DECIMAL, "dec": DECIMAL, "double precision": "double"}
_MAX_PRECISION = 38
_TOKEN = re.compile(r"[<>(),:]|[^<>(),:]+")


@dataclass(frozen=True, slots=True)
class HiveType:
    """A type.

    Attributes:
        name: `int`, `struct`, `decimal`, ..., lower case.
        arguments: numbers in brackets, such as precision and scale.
        members: types of a struct's fields; the element of an array; key and value of a map.
        names: names of a struct's fields.
    """

    name: str
    arguments: tuple[int, ...] = ()
    members: tuple[HiveType, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In the metastore's syntax: `struct<a:int,b:array<string>>`."""
        if self.name == STRUCT:
            inner = ",".join(f"{name}:{member}" for name, member in zip(self.names, self.members, strict=True))
            return f"struct<{inner}>"
        if self.members:
            return f"{self.name}<{','.join(map(str, self.members))}>"
        return f"{self.name}({','.join(map(str, self.arguments))})" if self.arguments else self.name


def array_of(element: HiveType) -> HiveType:
    """`array<element>`."""
    return HiveType(ARRAY, members=(element,))


def map_of(key: HiveType, value: HiveType) -> HiveType:
    """`map<key,value>`."""
    return HiveType(MAP, members=(key, value))


def struct_of(members: list[tuple[str, HiveType]]) -> HiveType:
    """`struct<name:type,...>`."""
    return HiveType(STRUCT, members=tuple(t for _, t in members), names=tuple(n for n, _ in members))


def decimal_of(precision: int, scale: int) -> HiveType:
    """`decimal(precision,scale)`."""
    return HiveType(DECIMAL, (precision, scale))


def parse_type(text: str) -> HiveType:
    """Parse a type in the metastore's syntax.

    Raises:
        SchemaError: it is not a type.
    """
    tokens = [token.strip() for token in _TOKEN.findall(text) if token.strip()]
    parser = _Parser(text, tokens)
    found = parser.type()
    parser.end()
    return found


class _Parser:
    """Reads one type from tokens."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def type(self) -> HiveType:
        """The type at the current position."""
        name = self._word().lower()
        name = _SYNONYMS.get(name, name)
        if name == STRUCT:
            self._expect("<")
            fields = [self._field()]
            while self._take(","):
                fields.append(self._field())
            self._expect(">")
            return struct_of(fields)
        if self._take("<"):
            members = [self.type()]
            while self._take(","):
                members.append(self.type())
            self._expect(">")
            return HiveType(name, members=tuple(members))
        arguments = self._arguments()
        return HiveType(name, arguments or ((10, 0) if name == DECIMAL else ()))

    def end(self) -> None:
        """Refuse further tokens."""
        if self._at < len(self._tokens):
            raise self._broken()

    def _field(self) -> tuple[str, HiveType]:
        name = self._word()
        self._expect(":")
        return name, self.type()

    def _arguments(self) -> tuple[int, ...]:
        if not self._take("("):
            return ()
        numbers = [self._number()]
        while self._take(","):
            numbers.append(self._number())
        self._expect(")")
        return tuple(numbers)

    def _number(self) -> int:
        word = self._word()
        if not word.isdecimal():
            raise self._broken()
        return int(word)

    def _word(self) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at] in "<>(),:":
            raise self._broken()
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._broken()

    def _broken(self) -> SchemaError:
        return SchemaError(
            f"{self._text!r} is not a known Hive type.",
            code="hive.type",
            suggestion="Correct the column in the metastore.",
        )


def widened(old: HiveType, new: HiveType) -> HiveType | None:
    """The type that can hold the values of both, or None if there is none.

    It keeps the fields of `old` in their order; struct fields that only `new` has are added at the end.
    """
    if old == new:
        return old
    if old.name in _WIDER and new.name in _WIDER:
        return max(old, new, key=lambda kind: _WIDER.index(kind.name))
    if old.name != new.name:
        return None
    if old.name == STRUCT:
        return _widened_struct(old, new)
    if old.name == DECIMAL:
        return _widened_decimal(old, new)
    if old.members and len(old.members) == len(new.members):
        members = [widened(a, b) for a, b in zip(old.members, new.members, strict=True)]
        known = tuple(member for member in members if member is not None)
        return replace(old, members=known) if len(known) == len(members) else None
    return None


def _widened_struct(old: HiveType, new: HiveType) -> HiveType | None:
    fields = dict(zip(old.names, old.members, strict=True))
    spelled = {name.lower(): name for name in fields}
    for name, member in zip(new.names, new.members, strict=True):
        known = spelled.get(name.lower())
        if known is None:
            fields[name] = member
            continue
        both = widened(fields[known], member)
        if both is None:
            return None
        fields[known] = both
    return struct_of(list(fields.items()))


def _widened_decimal(old: HiveType, new: HiveType) -> HiveType | None:
    """Enough digits on both sides of the point. Hive's own rules read files with another scale."""
    scale = max(old.arguments[1], new.arguments[1])
    whole = max(kind.arguments[0] - kind.arguments[1] for kind in (old, new))
    return decimal_of(whole + scale, scale) if whole + scale <= _MAX_PRECISION else None
