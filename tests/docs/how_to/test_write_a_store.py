"""docs/how-to/write-a-store.md shows the very store and suite that the tests run."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks, name_of, text_of

PAGE = ROOT / "docs" / "how-to" / "write-a-store.md"
QUOTED = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_page_shows_the_store_as_it_is() -> None:
    ((name, text),) = QUOTED.findall(text_of(PAGE))
    assert text == (ROOT / name).read_text()


def test_suite_on_the_page_is_the_one_that_runs() -> None:
    (shown,) = [b.text for b in blocks("python") if b.page == name_of(PAGE) and "StoreConformance" in b.text]
    run = (ROOT / "tests" / "integration" / "stores" / "test_example_store.py").read_text()
    without_types = re.sub(r": (Path|str|bytes)(?=[,)])|( -> [\w\[\], ]+)(?=:\n)", "", run)
    assert shown[shown.index("    def open_store") :] in without_types
