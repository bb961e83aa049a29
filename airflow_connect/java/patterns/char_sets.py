"""Sets of characters: ranges where they are known, else text of `regex`'s set syntax (version 1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
_ASCII_END = 0x80
_ASCII_SHIFT = 0x20
_CAPITAL_I_WITH_DOT = 0x130


class CharSet(NamedTuple):
    """A set of code points.

    Attributes:
        ranges: both ends inclusive, ascending; None when the set hangs on Unicode's properties.
        text: then what it is in `regex`'s syntax, one set in brackets or one property.
    """

    ranges: Ranges | None
    text: str = ""

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> CharSet:
        """A set of ranges in any order."""
        return cls(_merged(ranges))

    @classmethod
    def chars(cls, *characters: int) -> CharSet:
        """A set of single code points."""
        return cls.of(*((each, each) for each in characters))

    @classmethod
    def properties(cls, *names: str) -> CharSet:
        """A set of Unicode properties, by their names in `regex`; `^` before a name: all but these."""
        parts = "".join(rf"\P{{{name[1:]}}}" if name.startswith("^") else rf"\p{{{name}}}" for name in names)
        return cls(None, f"[{parts}]")

    def written(self) -> str:
        """The set in `regex`'s syntax."""
        if self.ranges is None:
            return self.text
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return escaped(self.ranges[0][0])
        return bracketed(self.ranges)

    def inside(self) -> str:
        """The set as a part of another one."""
        return self.text if self.ranges is None else bracketed(self.ranges)

    def union(self, other: CharSet) -> CharSet:
        """Characters of either."""
        if self.ranges is not None and other.ranges is not None:
            return CharSet(_merged((*self.ranges, *other.ranges)))
        return CharSet(None, f"[{self.inside()}{other.inside()}]")

    def intersection(self, other: CharSet) -> CharSet:
        """Characters of both."""
        if self.ranges is not None and other.ranges is not None:
            return self.negated().union(other.negated()).negated()
        return CharSet(None, f"[{self.inside()}&&{other.inside()}]")

    def negated(self) -> CharSet:
        """All other characters."""
        return CharSet(None, f"[^{self.text}]") if self.ranges is None else CharSet(complement(self.ranges))


EVERYTHING = CharSet(((0, LAST),))


def complement(ranges: Ranges) -> Ranges:
    """Every code point outside of `ranges`."""
    found, next_free = [], 0
    for first, last in ranges:
        if first > next_free:
            found.append((next_free, first - 1))
        next_free = last + 1
    if next_free <= LAST:
        found.append((next_free, LAST))
    return tuple(found)


def bracketed(ranges: Ranges) -> str:
    """Ranges as a set in brackets, in the syntax that `regex`, Python's `re` and RE2 share, but for the escapes."""
    if not ranges:
        return rf"[^{escaped(0)}-{escaped(LAST)}]"
    if ranges[0][0] == 0 and ranges[-1][1] == LAST and len(ranges) > 1:
        return f"[^{_inner(complement(ranges))}]"
    return f"[{_inner(ranges)}]"


def escaped(code: int) -> str:
    """One code point, as a literal that means itself everywhere in a pattern."""
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return rf"\x{code:02x}" if code <= 0xFF else rf"\u{code:04x}" if code <= 0xFFFF else rf"\U{code:08x}"


def _inner(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(escaped(a) if a == b else f"{escaped(a)}-{escaped(b)}" for a, b in ranges)


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


# Letter case, as java.util.regex compares it.


def ignoring_case(first: int, last: int, *, unicode_case: bool) -> CharSet:
    """The characters that a character (`first` is `last`) or range matches under the flag `i`, or `i` and `u`."""
    ranges = [(first, last)]
    if not unicode_case:
        for letters, shift in (((0x41, 0x5A), _ASCII_SHIFT), ((0x61, 0x7A), -_ASCII_SHIFT)):
            low, high = max(first, letters[0]), min(last, letters[1])
            if low <= high:
                ranges.append((low + shift, high + shift))
    elif first == last:
        _, folded = _folded_one(first)
        ranges += [(code, code) for code, (_, lower) in _cases().items() if lower == folded]
    else:
        for code, (upper, lower) in _cases().items():
            if first <= upper <= last or first <= lower <= last:
                ranges.append((code, code))
    return CharSet.of(*ranges)


def _folded_one(code: int) -> tuple[int, int]:
    upper = _single(chr(code).upper()) or _single(chr(code).title()) or code
    return upper, ord("i") if upper == _CAPITAL_I_WITH_DOT else _single(chr(upper).lower()) or upper


def _single(text: str) -> int:
    """The code point of a text of one character, else 0: Java maps character to character."""
    return ord(text) if len(text) == 1 else 0


@cache
def _cases() -> dict[int, tuple[int, int]]:
    """Upper case, and lower case of the upper case, of each character for which one of them is another character."""
    found = {}
    for code in range(0x1F000):
        char = chr(code)
        if char.upper() != char or char.lower() != char or char.title() != char:
            found[code] = _folded_one(code)
    return found
