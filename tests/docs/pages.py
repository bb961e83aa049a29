"""The pages of the documentation, taken apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docker").rglob("*.md")])
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A fenced block: where it stands, what is written behind the fence, its text."""

    page: str
    info: str
    text: str


def name_of(page: Path) -> str:
    """Path of a page below the root."""
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    """A page as it is."""
    return page.read_text("utf-8")


def blocks(*infos: str) -> list[Block]:
    """Fenced blocks of all pages whose fence says one of `infos`."""
    return [
        Block(name_of(page), found["info"].strip(), found["text"])
        for page in PAGES
        for found in _FENCE.finditer(text_of(page))
        if found["info"].strip() in infos
    ]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text_of(page))


def code_spans(page: Path) -> list[str]:
    """What stands between single backticks, outside of fenced blocks."""
    return _SPAN.findall(prose(page))
