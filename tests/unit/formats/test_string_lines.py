import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError
from airflow_connect.formats.format import Format
from airflow_connect.formats.string_lines import StringFormat
from tests.unit.formats.connect_values import Sink


def lines(schema, *values):
    sink = Sink()
    encoder = StringFormat().open(sink, schema)
    encoder.append(values)
    encoder.spill()
    encoder.finish()
    return sink.getvalue().decode()


def test_it_is_a_format():
    file_format: Format = StringFormat()
    assert file_format.extension == ".txt"


def test_one_line_per_value():
    assert lines(s.STRING, "a", "", "zürich 🚲") == "a\n\nzürich 🚲\n"


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        (None, {"ok": 1, "x": None}, "{ok=1, x=null}"),
        (s.struct(("a", s.INT32), ("b", s.OPTIONAL_STRING)), {"a": 1, "b": None}, "Struct{a=1}"),
        (s.FLOAT32, 1e10, "1.0E10"),
        (None, [True, 1.0], "[true, 1.0]"),
    ],
)
def test_other_values_are_printed_as_java_prints_them(schema, value, line):
    assert lines(schema, value) == f"{line}\n"


def test_text_without_utf8_form_is_refused_and_nothing_of_it_is_written():
    sink = Sink()
    with pytest.raises(DataError, match="lone surrogate"):
        StringFormat().open(sink, s.STRING).append(["a", "\ud800"])
    assert sink.getvalue() == b""


def test_nothing_is_written_for_no_values():
    assert lines(s.STRING) == ""
