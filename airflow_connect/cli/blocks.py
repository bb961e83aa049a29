"""What commands print: lines with styled parts, and tables. `terminal` determines their appearance."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_connect.runtime.reporting.texts import Table

Part = str | tuple[str, str]
"""A text, or a text and its style in rich's words, such as `bold red`."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, which a narrow terminal wraps at words.

    Attributes:
        parts: texts with their styles; they are not interpreted as markup.
        indent: blanks before the line.
        hang: additional blanks before wrapped parts.
        breaks: False: text that users copy, such as a command or JSON, is not wrapped.
    """

    parts: tuple[Part, ...]
    indent: int = 0
    hang: int = 0
    breaks: bool = True

    @property
    def text(self) -> str:
        """The line without styles."""
        return " " * self.indent + "".join(part if isinstance(part, str) else part[0] for part in self.parts)


Block = str | Line | Table


def line(*parts: Part, indent: int = 0, hang: int = 0, breaks: bool = True) -> Line:
    """A `Line` of these parts."""
    return Line(parts, indent, hang, breaks)


def plain_lines(block: Block) -> list[str]:
    """A block as lines without styles."""
    if isinstance(block, Table):
        return block.lines()
    return [block if isinstance(block, str) else block.text]
