from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.errors import ConfigError
from airflow_connect.api.properties_file import load_config, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b  ", {"a": "b  "}),
        ("a: b\nc\td\ne f=g", {"a": "b", "c": "d", "e": "f=g"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("# c\n! d\n\n \t\f\na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\\n   y\\\n z", {"a": "xyz"}),
        ("a=x\\\r\n  # y\r\nb=2", {"a": "x# y", "b": "2"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=x\\", {"a": "x"}),
        ("a=x\\\n\nb=2", {"a": "x", "b": "2"}),
        ("#c\\\na=1", {"a": "1"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ('a=\\t\\n\\r\\f\\q\\\\\\"', {"a": '\t\n\r\fq\\"'}),
        ("a=\\u00e9\\u65E5", {"a": "é日"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("path.format='year'=YYYY/'month'=MM", {"path.format": "'year'=YYYY/'month'=MM"}),
        ("a=1\rb=2", {"a": "1", "b": "2"}),
    ],
)
def test_parse_properties_text_is_read_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


def escaped(text: str, *, is_key: bool) -> str:
    """What java.util.Properties.store writes."""
    special = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    out = []
    for position, char in enumerate(text):
        if char in special:
            out.append(special[char])
        elif char in "=:#!\\" or (char == " " and (is_key or position == 0)):
            out.append("\\" + char)
        elif 0x20 <= ord(char) <= 0x7E:
            out.append(char)
        else:
            utf16 = char.encode("utf-16-be")
            out += [f"\\u{utf16[i : i + 2].hex().upper()}" for i in range(0, len(utf16), 2)]
    return "".join(out)


@given(st.dictionaries(TEXT, TEXT))
def test_parse_properties_written_by_java_gives_the_same_map(config: dict[str, str]) -> None:
    lines = [f"{escaped(key, is_key=True)}={escaped(value, is_key=False)}" for key, value in config.items()]
    assert parse_properties("\n".join(lines)) == config


def test_parse_properties_bad_unicode_escape_names_file_and_first_line_but_no_value() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties("a=1\n\npassword=geheim\\\n\\u12x4", "w.properties")
    assert "w.properties, line 3:" in caught.value.message
    assert "geheim" not in str(caught.value)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_load_config_properties_in_both_encodings(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "a.properties", "locale=Zürich")) == {"locale": "Zürich"}
    assert load_config(write(tmp_path, "b.properties", "locale=Zürich".encode("latin-1"))) == {"locale": "Zürich"}
    assert load_config(write(tmp_path, "c.conf", "\ufefflocale=x")) == {"locale": "x"}


def test_load_config_json_flat_and_envelope(tmp_path: Path) -> None:
    flat = {"name": "m", "flush.size": 1000, "x": 1.50, "y": True, "z": None}
    expected = {"name": "m", "flush.size": "1000", "x": "1.5", "y": "true", "z": None}
    assert load_config(write(tmp_path, "a.json", json.dumps(flat))) == expected
    assert load_config(write(tmp_path, "a.cfg", json.dumps(flat))) == expected
    inner = {k: v for k, v in flat.items() if k != "name"}
    answer = {"name": "m", "config": inner, "tasks": [{"connector": "m", "task": 0}], "type": "sink"}
    assert load_config(write(tmp_path, "b.json", "\ufeff" + json.dumps(answer))) == expected
    assert load_config(write(tmp_path, "c.json", json.dumps({"name": "m", "config": flat}))) == expected


def test_load_config_json_key_called_config_with_text_is_a_flat_map(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "a.json", '{"config": "x"}')) == {"config": "x"}


@pytest.mark.parametrize(
    ("content", "where", "why"),
    [
        ('{"a": "geheim",\n "b": }', "line 2", "no valid JSON"),
        ("[]", "line 1", "JSON object"),
        ('{"a": "1",\n "b": ["geheim"]}', "line 2", "an array"),
        ('{"config": {"a": "1",\n\n "b": {"c": "geheim"}}}', "line 3", "an object"),
        ('{"a": NaN}', "line 1", "NaN is no JSON number"),
        ('{"name": "m", "config": {"name": "n"}}', "x.json", "(n) doesn't match connector name (m)"),
    ],
)
def test_load_config_wrong_json_names_file_line_and_no_value(
    tmp_path: Path, content: str, where: str, why: str
) -> None:
    file = write(tmp_path, "x.json", content)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(file) in caught.value.message
    assert where in caught.value.message
    assert why in caught.value.message
    assert "geheim" not in str(caught.value)


def test_load_config_missing_file_or_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "none.properties")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)
