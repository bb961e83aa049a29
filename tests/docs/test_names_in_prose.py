"""Names that a reader types exist: extras of the package, and configuration keys that docstrings and comments name.

Keys that pages name: `test_examples.py`.
"""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.pages import PAGES, ROOT, name_of, text_of
from tests.docs.reference_pages import PAGES as REFERENCE_PAGES
from tests.docs.test_examples import is_known, keys_in

SOURCES = sorted((ROOT / "airflow_connect").rglob("*.py"))
EXTRA = re.compile(r"airflow-connect\[([a-z,-]*)\]|\bextra `([a-z-]+)`")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")

OBJECTS = {"airflow", "batch", "record", "state"}
"""Keys begin with these too, but in the code they are objects, and what follows is an attribute."""
OTHERS = {
    # Brokers, Java clients, Avro and Parquet; what JsonConverter takes without a definition.
    "avro.java.string", "max.poll.records", "offset.metadata.max.bytes", "parquet.block.size",
    "partition.assignment.strategy", "schemas.enable", "transaction.max.timeout.ms", "transaction.timeout.ms",
}  # fmt: skip


def first_words() -> set[str]:
    """What configuration keys begin with: other names with dots are attributes and modules."""
    listed = re.compile(r"^\| `([a-z0-9]+)\.", re.MULTILINE)
    return {word for page in REFERENCE_PAGES for word in listed.findall((ROOT / page.file).read_text("utf-8"))}


def unknown_keys(text: str, beginnings: set[str]) -> set[str]:
    keys = {key for span in SPAN.findall(text) for key in keys_in(span)}
    return {key for key in keys if key.partition(".")[0] in beginnings and not is_known(key)}


def test_keys_that_docstrings_and_comments_name_exist():
    beginnings = (first_words() | {"kafka"}) - OBJECTS
    found = {name_of(source): unknown_keys(text_of(source), beginnings) for source in SOURCES}
    assert {name: keys - OTHERS for name, keys in found.items() if keys - OTHERS} == {}


def test_extras_that_anybody_names_exist():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    unknown = {}
    for page in [*PAGES, *SOURCES]:
        named = {name for pair in EXTRA.findall(text_of(page)) for name in ",".join(pair).split(",")} - {""}
        if named - extras:
            unknown[name_of(page)] = named - extras
    assert unknown == {}


@pytest.mark.parametrize("wrong", ["kafka.api.timeout", "flush.sise", "run.max.recor"])
def test_a_key_that_is_none_is_found(wrong):
    assert unknown_keys(f"Bound of a request (`{wrong}`).", {wrong.partition(".")[0]}) == {wrong}
