"""Reads the text of a pattern, with the flags that apply at each position."""

from __future__ import annotations

import re
import unicodedata
from typing import NoReturn

from airflow_connect.java.patterns.nodes import PatternError

_HEX = frozenset(map(ord, "0123456789abcdefABCDEF"))
_OCTAL = range(0x30, 0x38)
_BLANKS = frozenset(map(ord, " \t\n\x0b\f\r"))
_QUOTE_START = re.compile(r"\\(?:(Q)|.)", re.DOTALL)
_LAST_CODE_POINT = 0x10FFFF


class Scanner:
    """A position in a pattern.

    With the flag `x` blanks and comments are skipped, except after a backslash. Java does that between
    all characters, even inside classes and counts.

    Attributes:
        position: of the next character in `codes`.
        flags: letters of the flags that apply here.
    """

    def __init__(self, text: str) -> None:
        """Begin at the start of `text`."""
        self.text = text
        self.codes = [*map(ord, without_quotes(text)), 0, 0]
        self.length = len(self.codes) - 2
        self.position = 0
        self.flags: frozenset[str] = frozenset()

    def fail(self, reason: str) -> NoReturn:
        """Refuse the pattern.

        Raises:
            PatternError: always.
        """
        raise PatternError(f"{reason} near index {min(max(self.position - 1, 0), self.length)} of {self.text[:200]}")

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= self.length

    def peek(self) -> int:
        """The next character; 0 at the end."""
        if "x" in self.flags:
            self._skip_blanks()
        return self.codes[self.position] if self.position <= self.length else 0

    def after(self, count: int = 1) -> int:
        """The character `count` positions ahead, even if it is a blank."""
        at = self.position + count
        return self.codes[at] if at < len(self.codes) else 0

    def advance(self) -> int:
        """Skip one character; returns the next one."""
        self.position += 1
        return self.peek()

    def read(self) -> int:
        """Return the next character and move past it."""
        code = self.peek()
        self.position += 1
        return code

    def read_raw(self) -> int:
        """Return the next character, even if it is a blank, and move past it."""
        code = self.after(0)
        self.position += 1
        return code

    def _skip_blanks(self) -> None:
        while self.position < self.length:
            code = self.codes[self.position]
            if code == 0x23:
                while self.position < self.length and not self._is_line_end(self.codes[self.position]):
                    self.position += 1
            elif code in _BLANKS:
                self.position += 1
            else:
                return

    def _is_line_end(self, code: int) -> bool:
        return code == 0x0A or ("d" not in self.flags and code in (0x0D, 0x85, 0x2028, 0x2029))

    # Characters that are written by their number or name.

    def octal(self) -> int:
        r"""What follows `\0`: up to three digits, the first of three at most 3."""
        digits = [self.read()]
        if digits[0] not in _OCTAL:
            self.fail("Illegal octal escape sequence")
        while len(digits) < 3 and self.peek() in _OCTAL and (len(digits) < 2 or digits[0] <= 0x33):
            digits.append(self.read())
        return int("".join(map(chr, digits)), 8)

    def hexadecimal(self) -> int:
        r"""What follows `\x`: two digits, or any number of them in braces."""
        first = self.read()
        if first in _HEX and self.peek() in _HEX:
            return int(chr(first) + chr(self.read()), 16)
        if first != ord("{") or self.peek() not in _HEX:
            self.fail("Illegal hexadecimal escape sequence")
        code = 0
        while self.peek() in _HEX:
            code = code * 16 + int(chr(self.read()), 16)
            if code > _LAST_CODE_POINT:
                self.fail("Hexadecimal codepoint is too big")
        if self.read() != ord("}"):
            self.fail("Unclosed hexadecimal escape sequence")
        return code

    def unicode(self) -> int:
        r"""What follows `\u`: four digits; two such escapes may be a surrogate pair."""
        code, after = self._four_digits(), self.position
        if 0xD800 <= code < 0xDC00 and self.read() == ord("\\") and self.read() == ord("u"):
            low = self._four_digits()
            if 0xDC00 <= low < 0xE000:
                return 0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00
        self.position = after
        return code

    def _four_digits(self) -> int:
        digits = [self.read() for _ in range(4)]
        if not _HEX.issuperset(digits):
            self.fail("Illegal Unicode escape sequence")
        return int("".join(map(chr, digits)), 16)

    def control(self) -> int:
        r"""What follows `\c`."""
        if self.is_at_end:
            self.fail("Illegal control escape sequence")
        return self.read() ^ 64

    def named_character(self) -> int:
        r"""What follows `\N`: the Unicode name of a character in braces."""
        if self.read() != ord("{"):
            self.fail("Illegal character name escape sequence")
        name = ""
        while (code := self.read()) != ord("}"):
            if self.is_at_end:
                self.fail("Unclosed character name escape sequence")
            name += chr(code)
        try:
            found = unicodedata.lookup(name)
        except KeyError:
            found = ""
        if len(found) != 1:
            self.fail(f"Unknown character name [{name}]")
        return ord(found)


def without_quotes(text: str) -> str:
    r"""The pattern with the text between `\Q` and `\E` escaped character by character."""
    parts, position = [], 0
    for found in _QUOTE_START.finditer(text):
        if found.start() < position or not found[1]:
            continue
        parts.append(text[position : found.start()])
        end = text.find(r"\E", found.end())
        parts.append(_escaped(text[found.end() : end if end >= 0 else len(text)]))
        position = end + 2 if end >= 0 else len(text)
    return "".join((*parts, text[position:]))


def _escaped(quoted: str) -> str:
    # A digit must not become a part of an escape before the quote, such as a back reference.
    text = "".join(char if char.isascii() and char.isalnum() else f"\\{char}" for char in quoted)
    return f"\\x3{text}" if text[:1].isdigit() else text
