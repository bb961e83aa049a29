"""The help texts inside docs/cli.md: `python -m tests.docs.command_line_page` writes them anew."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest

from airflow_connect.cli.main import build_parser

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"<!-- help: (?P<name>[a-z -]*?)-->\n```text\n(?P<text>.*?)```", re.DOTALL)
WIDTH = "100"


def help_texts() -> dict[str, str]:
    """What `--help` of the program (name ""), of each command and each action prints on a terminal of 100 columns."""
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
        return found


def commands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """The parsers of all commands, by name."""
    actions = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    return {name: command for action in actions for name, command in action.choices.items()}


def shown_texts() -> dict[str, str]:
    """The help texts that the page shows."""
    return {found["name"].strip(): found["text"] for found in BLOCK.finditer(PAGE.read_text("utf-8"))}


def updated_page() -> str:
    """The page with true help texts."""
    texts = help_texts()

    def block(found: re.Match[str]) -> str:
        return f"<!-- help: {found['name']}-->\n```text\n{texts[found['name'].strip()]}```"

    return BLOCK.sub(block, PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(updated_page(), "utf-8")
