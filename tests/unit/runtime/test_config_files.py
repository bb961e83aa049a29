"""Configuration files: Java's properties grammar and the two JSON shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.errors import ConfigError
from airflow_connect.runtime.config_files import (
    parse_properties,
    read_connector_file,
    read_worker_file,
    unwrap_connector,
)


# The examples of the documentation of java.util.Properties.load are among these.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Truth = Beauty", {"Truth": "Beauty"}),
        ("  Truth:Beauty", {"Truth": "Beauty"}),
        ("Truth                    :Beauty", {"Truth": "Beauty"}),
        ("Truth Beauty", {"Truth": "Beauty"}),
        (
            (
                "fruits                           apple, banana, pear, \\\n"
                "                                  cantaloupe, watermelon, \\\n"
                "                                  kiwi, mango"
            ),
            {"fruits": "apple, banana, pear, cantaloupe, watermelon, kiwi, mango"},
        ),
        ("cheeses", {"cheeses": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a==b", {"a": "=b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b c", {"a b": "c"}),
        ("# comment \\\na=b", {"a": "b"}),
        ("! comment\n\n \t\na=b", {"a": "b"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\n  c", {"a": "b\\c"}),
        ("a=tab\\there\\nline", {"a": "tab\there\nline"}),
        ("a=\\u00e9\\z", {"a": "éz"}),
        ("a=trailing  ", {"a": "trailing  "}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("path.format='year'=YYYY/'month'=MM", {"path.format": "'year'=YYYY/'month'=MM"}),
        ("topics.regex=a\\\\.b", {"topics.regex": "a\\.b"}),
        ("a=b\\", {"a": "b"}),
        ("", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_malformed_unicode_escape_names_the_line() -> None:
    with pytest.raises(ConfigError, match=r"Line 2 of w\.properties"):
        parse_properties("a=b\nc=\\u12", "w.properties")


def escaped(text: str) -> str:
    """As java.util.Properties.store writes."""
    return "".join(f"\\u{ord(c):04x}" if not c.isalnum() or ord(c) > 126 else c for c in text)


BMP = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(BMP.filter(bool), BMP, max_size=5))
def test_every_stored_properties_file_is_read_back(config: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in config.items())
    assert parse_properties(text) == config


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"name": "a", "connector.class": "C"}, {"name": "a", "connector.class": "C"}),
        ({"name": "a", "config": {"x": "1"}}, {"name": "a", "x": "1"}),
        ({"name": "a", "config": {"name": "a", "x": "1"}}, {"name": "a", "x": "1"}),
        ({"config": {"name": "a"}}, {"name": "a"}),
        (
            {"name": "a", "connector.class": "C", "config": "own"},
            {"name": "a", "connector.class": "C", "config": "own"},
        ),
    ],
    ids=["flat", "posted", "posted-twice", "unnamed", "key-called-config"],
)
def test_both_json_shapes_give_a_flat_configuration(
    document: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    assert read_connector_file(path) == expected


def test_two_different_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="two names: 'a' beside the configuration and 'b' inside"):
        unwrap_connector({"name": "a", "config": {"name": "b"}}, "c.json")


def test_properties_file_of_a_connector(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_bytes("\ufeffname=café\n".encode())
    assert read_connector_file(path) == {"name": "café"}


def test_latin_1_file_of_a_worker(tmp_path: Path) -> None:
    path = tmp_path / "w.properties"
    path.write_bytes("a=café\n".encode("latin-1"))
    assert read_worker_file(path) == {"a": "café"}


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "holds a JSON list, not an object"), ('{"a": }', "is not JSON: .* line 1 column 7")],
)
def test_file_that_is_no_configuration_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    for read in (read_connector_file, read_worker_file):
        with pytest.raises(ConfigError, match=message):
            read(path)


def test_missing_file_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no file") as caught:
        read_worker_file(tmp_path / "none.properties")
    assert str(Path.cwd()) in caught.value.suggestion


def test_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_worker_file(tmp_path)
