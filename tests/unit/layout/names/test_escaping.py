import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError
from airflow_connect.layout.names.escaping import check_delimiter, escape, unescape
from airflow_connect.layout.names.object_names import NameSettings, object_key
from airflow_connect.layout.partitioners import FieldPartitioner

# Text in which the characters that matter are frequent.
NASTY = st.text(st.sampled_from("ab.%/\\25FCEDx-_\n\x7f\x85é€\ud800\uffff"), max_size=12)
VALUES = st.one_of(NASTY, st.text(st.characters(codec=None), max_size=20))
DELIMITERS = st.sampled_from(["/", "_", "-", "--", "|", "+/", "·", "~~~"])


@pytest.mark.parametrize(
    "value",
    ["", "a", "2024-01-01", "a=b", "100%", "50%20", "%zz", "x.y", "...", "a b", "ü", "日本", "a:b", "%2f", "..a", "~"],
)
def test_harmless_values_stay_verbatim(value):
    assert escape(value) == value


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("a/b", "a%2Fb"),
        ("a\\b", "a%5Cb"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("../../x", "..%2F..%2Fx"),
        ("%2F", "%252F"),
        ("%25", "%2525"),
        ("%%2F", "%%252F"),
        ("a\nb", "a%0Ab"),
        ("\x00", "%00"),
        ("\x7f", "%7F"),
        ("\x85", "%C2%85"),
        ("\ud800", "%ED%A0%80"),
        ("\ufffe", "%EF%BF%BE"),
        ("\uffff", "%EF%BF%BF"),
        ("%EF%BF%BF", "%25EF%BF%BF"),
    ],
)
def test_harmful_values_are_escaped(value, escaped):
    assert escape(value) == escaped
    assert unescape(escaped) == value


def test_colon_is_escaped_only_where_the_file_system_forbids_it():
    assert escape("12:30") == "12:30"
    assert escape("12:30", forbidden=":") == "12%3A30"
    assert escape("12%3A30", forbidden=":") == "12%253A30"


@given(VALUES, VALUES)
@example(":", "%3A")
def test_values_without_forbidden_characters_stay_apart(one, other):
    escaped = [escape(value, forbidden=":") for value in (one, other)]
    assert ":" not in "".join(escaped)
    assert [unescape(value, forbidden=":") for value in escaped] == [one, other]


def test_delimiter_inside_a_value_is_escaped_also_where_it_would_only_arise_with_the_next_one():
    assert escape("a_b", "_") == "a%5Fb"
    assert escape("a-b", "--") == "a-b"
    assert escape("a--b", "--") == "a%2D-b"
    assert escape("a-", "--") == "a%2D"


@given(VALUES, DELIMITERS)
@example("%5F", "_")
@example("%2D-", "--")
def test_unescape_is_the_inverse_of_escape(value, delimiter):
    assert unescape(escape(value, delimiter), delimiter) == value


@given(st.lists(VALUES, min_size=2, max_size=2), st.lists(VALUES, min_size=2, max_size=2), DELIMITERS)
@example(["a", "x_g=b"], ["a_g=x", "b"], "_")
def test_different_values_have_different_directories(one, other, delimiter):
    partitioner = FieldPartitioner(["f", "g"], delimiter)
    same = partitioner.directory_of_values(one) == partitioner.directory_of_values(other)
    assert same == (one == other)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_no_value_leaves_the_directory_of_its_topic(values):
    directory = FieldPartitioner([f"f{number}" for number in range(len(values))]).directory_of_values(values)
    key = object_key(directory, "orders", 0, 0, ".json", NameSettings())
    assert posixpath.normpath(key) == key
    assert key.startswith("topics/orders/f0=")
    assert key.count("/") == 2 + len(values)
    key.encode("utf-8")


@pytest.mark.parametrize("delimiter", ["", " ", "a", "=1", "%", "0"])
def test_delimiters_that_escapes_consist_of_are_refused(delimiter):
    with pytest.raises(ConfigError) as caught:
        check_delimiter(delimiter, "directory.delim")
    assert caught.value.config_path == "directory.delim"
