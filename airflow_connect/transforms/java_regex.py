r"""Java's regular expressions in Python's, for patterns over topic names.

The two differ in a few forms only: named groups, quotes, POSIX classes, back references by name, the end of the input.
What Python cannot say (classes inside character classes, `\G`, `\X`) is refused. Topic names are ASCII, and so are
Java's `\w`, `\d` and `\s`. Source: documentation of java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from typing import Any

from airflow_connect.api.config_values import invalid

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
    "L": "a-zA-Z",
    "IsL": "a-zA-Z",
    "IsAlphabetic": "a-zA-Z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "Nd": "0-9",
    "IsDigit": "0-9",
}
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\(?P<sign>[pP])(?:\{(?P<long>\w+)\}|(?P<short>\w))"
    r"|\\k<(?P<reference>\w+)>"
    r"|\(\?<(?P<group>[A-Za-z]\w*)>"
    r"|\\(?P<escape>.)"
    r"|(?P<intersection>&&)"
    r"|(?P<bracket>[\[\]])",
    re.DOTALL,
)
_ESCAPES = {"z": r"\Z", "Z": r"(?=\n?\Z)", "h": r"[ \t]", "R": r"(?:\r\n|[\n\x0b\f\r])", "e": r"\x1b"}
_UNKNOWN_ESCAPES = "GXNHVvc"


def compile_java_regex(pattern: str) -> re.Pattern[str]:
    """The same expression for Python.

    Raises:
        re.error: it is none, or Python has no such form; the message says which.
    """
    inside_class = False

    def translated(token: re.Match[str]) -> str:
        nonlocal inside_class
        if inside_class and (token["intersection"] or token["bracket"] == "["):
            raise re.error("unions and intersections of character classes are not supported")
        if token["bracket"]:
            inside_class = token["bracket"] == "["
            return token["bracket"]
        return "&&" if token["intersection"] else _translated(token, inside_class=inside_class)

    return re.compile(_TOKEN.sub(translated, pattern), re.ASCII)


def _translated(token: re.Match[str], *, inside_class: bool) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["sign"]:
        return _posix(token["long"] or token["short"], negated=token["sign"] == "P", inside_class=inside_class)
    if token["reference"]:
        return f"(?P={token['reference']})"
    if token["group"]:
        return f"(?<{token['group']}>" if inside_class else f"(?P<{token['group']}>"
    escape = token["escape"]
    if escape in _UNKNOWN_ESCAPES:
        raise re.error(f"\\{escape} is not supported")
    if inside_class:
        return r" \t" if escape == "h" else token[0]
    return _ESCAPES.get(escape, token[0])


def _posix(name: str, *, negated: bool, inside_class: bool) -> str:
    characters = _POSIX.get(name.removeprefix("java").replace("LowerCase", "Lower").replace("UpperCase", "Upper"))
    if characters is None:
        raise re.error(f"unknown character property {{{name}}}")
    if inside_class:
        if negated:
            raise re.error(f"\\P{{{name}}} inside a character class is not supported")
        return characters
    return f"[{'^' if negated else ''}{characters}]"


def check_regex(name: str, value: Any) -> None:
    """Validator of keys that hold a regular expression; the text is Connect's up to the reason."""
    if value is None:
        return
    try:
        compile_java_regex(value)
    except re.error as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None


class Replacement:
    """The text that stands for a match: `$1`, `${name}`, and a backslash before characters that mean themselves."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        """Read `text`.

        Raises:
            re.error: it names a group that `pattern` does not have, or ends in the middle of a reference.
        """
        self._parts: list[str | int] = []
        self._pattern = pattern
        position = 0
        while position < len(text):
            if text[position] not in "\\$":
                self._parts.append(text[position])
                position += 1
            elif position + 1 == len(text):
                missing = "character to be escaped" if text[position] == "\\" else "group index"
                raise re.error(f"Illegal group reference: {missing} is missing")
            elif text[position] == "\\":
                self._parts.append(text[position + 1])
                position += 2
            else:
                position = self._reference(text, position + 1)

    def _reference(self, text: str, position: int) -> int:
        """Read the group behind a dollar sign; returns where the text goes on."""
        named = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(text, position)
        if named is not None:
            if named[1] not in self._pattern.groupindex:
                raise re.error(f"No group with name {{{named[1]}}}")
            self._parts.append(self._pattern.groupindex[named[1]])
            return named.end()
        if text[position] not in "0123456789":
            raise re.error("Illegal group reference")
        group = int(text[position])
        position += 1
        if group > self._pattern.groups:
            raise re.error(f"No group {group}")
        # As in Java more digits belong to the number as long as there is such a group.
        while position < len(text) and text[position] in "0123456789":
            longer = group * 10 + int(text[position])
            if longer > self._pattern.groups:
                break
            group, position = longer, position + 1
        self._parts.append(group)
        return position

    def expand(self, match: re.Match[str]) -> str:
        """The replacement of one match; a group that took no part is empty."""
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._parts)
