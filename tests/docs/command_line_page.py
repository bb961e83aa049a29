"""The help texts inside the pages of the command line: `python -m tests.docs.command_line_page` writes them anew."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest

from airflow_connect.cli.main import build_parser

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "cli.md", DOCS / "cli-connectors.md")
TARGET = re.compile(r"\nwhere the connectors are registered:\n(?:  .*\n)+")
"""Options that many commands have; the page shows them once, under this name."""
BLOCK = re.compile(r"<!-- help: (?P<name>[a-z -]*?)-->\n```text\n(?P<text>.*?)```", re.DOTALL)
WIDTH = "100"


def help_texts() -> dict[str, str]:
    """What `--help` of the program (name ""), of each command and each action prints on a terminal of 100 columns.

    `where`: the options that say where connectors are registered; they are left out of the others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", WIDTH)
        patch.setenv("NO_COLOR", "1")
        parser = build_parser()
        found = {"": parser.format_help()}
        for name, command in commands(parser).items():
            actions = commands(command)
            found |= {f"{name} {action}": sub.format_help() for action, sub in actions.items()}
            if not actions:
                found[name] = command.format_help()
        where = TARGET.search(found["connectors list"])
        assert where is not None
        return {name: TARGET.sub("", text) for name, text in found.items()} | {"where": where[0].lstrip()}


def commands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """The parsers of all commands, by name."""
    actions = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    return {name: command for action in actions for name, command in action.choices.items()}


def shown_texts() -> dict[str, str]:
    """The help texts that the pages show."""
    return {found["name"].strip(): found["text"] for page in PAGES for found in BLOCK.finditer(page.read_text("utf-8"))}


def updated(page: Path) -> str:
    """A page with true help texts."""
    texts = help_texts()

    def block(found: re.Match[str]) -> str:
        return f"<!-- help: {found['name']}-->\n```text\n{texts[found['name'].strip()]}```"

    return BLOCK.sub(block, page.read_text("utf-8"))


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(updated(path), "utf-8")
