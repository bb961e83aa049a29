"""The words of a .proto text, and reading them one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from airflow_connect.errors import SchemaError
from airflow_connect.java.numbers import shown_number, wrapped

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<number>\.\d[\w.]*(?:[eE][+-]?\d+)?|\d(?:[\w.]*?[eE][+-]\d+|[\w.]*))
    |(?P<word>[A-Za-z_]\w*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<unended>["']|/\*)
    |(?P<sign>[^\w\s])""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_SHORT = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class Token(NamedTuple):
    """A word: `kind` is number, word, text, sign or end; `start` and `end` are its place in the text, half-open."""

    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            break
        if match.lastgroup == "unended":
            yield Token("sign", match[0], match.start(), match.end())  # No text may contain it.
            position = len(text)
            break
        if match.lastgroup != "blank":
            yield Token(str(match.lastgroup), match[0], match.start(), match.end())
        position = match.end()
    yield Token("end", "", position, position)


class Tokens:
    """The words of a text, looked at one ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._all = list(_tokens(text))
        self._next = 0

    @property
    def peek(self) -> Token:
        """The next word."""
        return self._all[self._next]

    @property
    def peek_after(self) -> Token:
        """The word after the next one."""
        return self._all[min(self._next + 1, len(self._all) - 1)]

    def take(self) -> Token:
        """Consume and return the next word."""
        token = self._all[self._next]
        if token.kind == "end":
            self.fail("a word is missing")
        self._next += 1
        return token

    def accept(self, *texts: str) -> str:
        """Take the next word if it is one of `texts`, else ""."""
        token = self.peek
        if token.kind != "text" and token.text in texts:
            self._next += 1
            return token.text
        return ""

    def expect(self, text: str) -> None:
        """Take `text`; SchemaError when something else comes."""
        if not self.accept(text):
            self.fail(f"{text!r} is expected before {self.peek.text!r}")

    def word(self) -> str:
        """Take an identifier."""
        if self.peek.kind != "word":
            self.fail(f"a name is expected before {self.peek.text!r}")
        return self.take().text

    def dotted(self) -> str:
        """Take a name with dots, such as `.google.protobuf.Any`."""
        parts = [self.accept(".") + self.word()]
        while self.accept("."):
            parts.append(self.word())
        return ".".join(parts)

    def integer(self) -> int:
        """Take a whole number of 32 bits: decimal, 0x hexadecimal or 0 octal, with a sign."""
        sign = -1 if self.accept("-") else 1
        text = self.take().text
        try:
            number = sign * int(text, 8 if re.fullmatch("0[0-7]+", text) else 0)
        except ValueError:
            self.fail(f"a whole number is expected before {shown_number(text)!r}")
        if wrapped(number, 32) != number:
            self.fail(f"the number {shown_number(text)} does not fit into 32 bits")
        return number

    def string(self) -> str:
        """Take a text; texts side by side are one."""
        return self.string_bytes().decode("utf-8", "replace")

    def string_bytes(self) -> bytes:
        """As `string`, before it is decoded."""
        if self.peek.kind != "text":
            self.fail(f"a text in quotes is expected before {self.peek.text!r}")
        parts = []
        while self.peek.kind == "text":
            parts.append(_unescape(self.take().text[1:-1].encode("utf-8", "replace")))
        return b"".join(parts)

    def skip_block(self, opening: str, closing: str) -> str:
        """Take all from `opening` to the `closing` that belongs to it; what stands between."""
        start = self.peek.end
        self.expect(opening)
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "sign":
                depth += (token.text == opening) - (token.text == closing)
        return self.text[start : token.start]

    def skip_statement(self) -> None:
        """Take all to the next semicolon, blocks included."""
        while not self.accept(";"):
            if self.peek.text == "{":
                self.skip_block("{", "}")
            else:
                self.take()

    def fail(self, reason: str) -> NoReturn:
        """Say what is wrong, and in which line."""
        if self.peek.kind == "end":
            reason = "the text ends too early"
        line = self.text.count("\n", 0, self.peek.start) + 1
        raise SchemaError(
            f"The Protobuf schema cannot be read: in line {line} {reason}.",
            code="data.schema",
            suggestion="Compare the schema with the language of Protocol Buffers.",
        )


def _unescape(raw: bytes) -> bytes:
    def plain(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        if escape[:1] == b"x":
            return bytes([int(escape[1:], 16)])
        if escape[:1] in (b"u", b"U"):
            return chr(int(escape[1:], 16)).encode("utf-8", "replace")
        if escape[:1].isdigit():
            return bytes([int(escape, 8) & 0xFF])
        return _SHORT.get(escape, escape)

    return _ESCAPE.sub(plain, raw)
