from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import parse_properties


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
def test_parse_properties_examples_of_java_s_documentation_and_of_people(text: str, expected: dict[str, str]) -> None:
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
