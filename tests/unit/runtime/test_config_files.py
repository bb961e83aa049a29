"""Configuration files: where they are, their encodings, and the two JSON shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.runtime.config_files import (
    read_connector_file,
    read_worker_file,
    unwrap_connector,
)


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
    with pytest.raises(ConfigError, match="two names: 'a' next to the configuration and 'b' inside"):
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
    [("[1]", "contains a JSON list, not an object"), ('{"a": }', "is not JSON: .* line 1 column 7")],
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.json", '{"flush.size": "100", "flush.size": "5"}', "has the key 'flush.size' twice, with different values"),
        ("c.json", '{"name":"a","config":{"x":"1","x":"2"}}', "has the key 'x' twice, with different values"),
        ("c.properties", "flush.size=100\n# more\nflush.size=5\n", r"'flush.size' twice \(lines 1 and 3\), with diff"),
        ("c.json", '\n// orders\n{"name": "x"}', "line 2 is a comment, and JSON has no comments"),
        ("c.json", '/* orders */\n{"name": "x"}', "line 1 is a comment, and JSON has no comments"),
        ("c.properties", '// orders\n{"name": "x"}', "line 1 is a comment, and JSON has no comments"),
        ("c.json", '# orders\n{"name": "x"}', "is not JSON: Expecting value: line 1 column 1"),
    ],
)
@pytest.mark.parametrize("read", [read_connector_file, read_worker_file])
def test_file_that_could_be_read_in_two_ways_is_refused(
    read: Any, name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read(path)
    assert caught.value.code == "config.file_invalid" and "100" not in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("c.json", '{"a":"1","a":"1"}'), ("c.properties", "a=1\na=1\n")])
def test_key_that_is_repeated_with_the_same_value_is_read(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert read_connector_file(path) == {"a": "1"}


@pytest.mark.parametrize("name", ["c.json", "c.properties"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_utf_16_file_says_so(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(('{"name": "a"}' if name == "c.json" else "name=a\n").encode(encoding))
    with pytest.raises(ConfigError, match="is not UTF-8 text") as caught:
        read_connector_file(path)
    assert "Save it as UTF-8" in caught.value.suggestion


def test_constant_that_is_no_json_is_not_taken_for_a_repeated_key(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"name": "a", "flush.size": NaN}')
    with pytest.raises(ConfigError, match="is not JSON: NaN is not JSON"):
        read_connector_file(path)


def test_keys_next_to_the_configuration_are_refused() -> None:
    answered = {"name": "a", "config": {"x": "1"}, "tasks": [], "type": "sink"}  # by GET /connectors/a
    assert unwrap_connector(answered, "here") == {"name": "a", "x": "1"}
    with pytest.raises(ConfigError, match=r"here has keys next to `config`, .*: flush\.size, topics") as caught:
        unwrap_connector({"name": "a", "config": {"x": "1"}, "topics": "t", "flush.size": "1"}, "here")
    assert caught.value.config_path == "flush.size"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n[worker]\nbootstrap.servers=a:9092\n", r"begins with a section of an INI file \(line 2\)"),
        ("[my sink]\r\nname=a\r\n", r"begins with a section of an INI file \(line 1\)"),
        ("// the sink\nname=a\n", r"begins with // \(line 1\), which is not a comment in a properties file"),
        ("\n/* the sink */\nname=a\n", r"begins with /\* \(line 2\)"),
    ],
)
def test_properties_file_in_another_language_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "c.properties"
    path.write_bytes(content.encode())
    for read in (read_connector_file, read_worker_file):
        with pytest.raises(ConfigError, match=message) as caught:
            read(path)
        assert "JSON" not in caught.value.suggestion


@pytest.mark.parametrize("content", ["[]", "[true]", '["a"]', "[\n1]"])
def test_json_list_is_no_section(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="contains a JSON list, not an object"):
        read_connector_file(path)


@pytest.mark.parametrize("state", ["STOPPED", "paused", "other"])
def test_initial_state_in_which_nothing_runs_is_refused(state: str) -> None:
    with pytest.raises(ConfigError, match=f"`initial_state` '{state}' next to `config`") as caught:
        unwrap_connector({"name": "a", "config": {"x": "1"}, "initial_state": state}, "c.json")
    assert caught.value.config_path == "initial_state"


@pytest.mark.parametrize("state", ["RUNNING", "running", None])
def test_initial_state_in_which_it_runs_has_no_effect(state: str | None) -> None:
    assert unwrap_connector({"config": {"x": "1"}, "initial_state": state}, "c.json") == {"x": "1"}
