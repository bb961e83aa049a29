"""docs/how-to/write-a-connector.md shows the very files that the tests install and run."""

from __future__ import annotations

import json
import re

import pytest

from tests.docs.pages import ROOT, blocks, text_of

PAGE = ROOT / "docs" / "how-to" / "write-a-connector.md"
QUOTED = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILES = QUOTED.findall(text_of(PAGE))


@pytest.mark.parametrize(("name", "text"), FILES, ids=[name for name, _ in FILES])
def test_page_shows_the_file_as_it_is(name: str, text: str) -> None:
    assert text == (ROOT / name).read_text()


def test_page_shows_both_examples_and_how_they_are_registered() -> None:
    assert [name.rpartition("/")[2] for name, _ in FILES] == [
        "sqlite_sink.py", "pyproject.toml", "lines_source.py", "lines_in_columns.py",
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name, _ in FILES if name.endswith(".py")])
def test_example_has_fewer_than_forty_lines(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) < 40


@pytest.mark.parametrize(
    ("suite", "file"), [("SinkConformance", "test_sqlite_sink.py"), ("SourceConformance", "test_lines_source.py")]
)
def test_suite_on_the_page_is_the_one_that_runs(suite: str, file: str) -> None:
    page = str(PAGE.relative_to(ROOT))
    (shown,) = [b.text for b in blocks("python") if b.page == page and f"import {suite}" in b.text]
    run = (ROOT / "tests" / "integration" / "plugins" / file).read_text()
    without_types = re.sub(r": (?:Path|str|int)(?=[,)])|( -> [\w\[\], ]+)(?=:\n)", "", run)
    assert shown[shown.index("    connector_class") :] in without_types


def test_configuration_on_the_page_names_the_entry_point_and_its_key() -> None:
    (config,) = [json.loads(b.text) for b in blocks("json sink")]
    assert (config["connector.class"], "sqlite.file" in config) == ("SqliteSink", True)
