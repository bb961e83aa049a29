"""`tests/public_reports.md`: each report of another tool has a test, which exists."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.docs.pages import ROOT

ROW = re.compile(r"^\| (?P<report>.+) \| `(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)` \|$", re.MULTILINE)


@cache
def names_in(file: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_report_has_a_test_that_exists() -> None:
    text = (ROOT / "tests/public_reports.md").read_text()
    rows = list(ROW.finditer(text))
    lines = [line for line in text.splitlines() if line.startswith("| ") and line != "| report | test |"]

    assert len(rows) == len(lines) >= 40
    assert [row["report"] for row in rows if row["test"] not in names_in(row["file"])] == []
