"""The page of benchmarks shows the kept figures; every table, and the README, says where they are from."""

from __future__ import annotations

import re

import pytest

from tests.bench import last_release
from tests.bench.rows import all_rows
from tests.docs.pages import ROOT, text_of

PAGE = text_of(last_release.PAGE)
ORIGIN = re.compile(r"Commit [0-9a-f]{7,}(-dirty)?, 20\d\d-\d\d-\d\d, \d+ x \S")


def tables() -> list[tuple[str, str]]:
    """The first cell of each table of figures, and the text from there to the next table or heading."""
    parts = re.split(r"(?m)^(?=\|[^\n]+\|\n\|---)|^(?=#)", PAGE)
    return [(part.split("|")[1].strip(), part) for part in parts if part.startswith("|")]


@pytest.mark.parametrize(("first", "text"), tables())
def test_a_table_says_commit_date_and_machine(first, text):
    assert ORIGIN.search(text), f"The table that begins with {first} says not where it is from."


def test_tables_show_the_kept_figures():
    figures = last_release.read()
    assert last_release.with_tables(PAGE, figures) == PAGE
    assert set(figures) <= {row.name for row in all_rows(4_000_000)}
    assert len(figures) > 40


def test_a_row_is_compared_with_the_last_release_only_with_as_many_records():
    last = {"raw-gzip": last_release.read()["raw-gzip"]}
    before = last["raw-gzip"]
    same = ("raw-gzip", before.records, before.copy_rate, before.cpu)
    assert last_release.compared(*same, last) == "1.00, CPU 1.00"
    assert last_release.compared("raw-gzip", 1, before.copy_rate, before.cpu, last) == "-"
    assert not last_release.is_slower(*same[:3], last)
    assert last_release.is_slower("raw-gzip", before.records, before.copy_rate // 2, last)


def test_numbers_of_the_readme_are_those_of_the_page():
    rows = [line for line in text_of(ROOT / "README.md").splitlines() if "/s" in line and line.startswith("|")]
    numbers = [number for row in rows for number in re.findall(r"[\d,]{5,}(?= (?:records|documents|rows)/s)", row)]
    assert len(numbers) == 6
    assert [number for number in numbers if number not in PAGE] == []
