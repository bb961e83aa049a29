"""Dead letters as people see them: what can be shown of a value, and a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.reading.dead_letters import DeadLetter
from airflow_connect.runtime.driver.dead_letters.view import PREVIEW_CHARACTERS, letter_table, preview


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, "null"),
        (b"", ""),
        (b"not json", "not json"),
        ("zürich 🚲".encode(), "zürich 🚲"),
        (b"a\nb\tc", "a\\nb\\tc"),
        (b"\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\u202eb".encode(), "a\\u202eb"),
        (b"x" * PREVIEW_CHARACTERS, "x" * PREVIEW_CHARACTERS),
        (b"x" * 10_000_000, "x" * PREVIEW_CHARACTERS + "..."),
        ("🚲".encode() * 1000, "🚲" * PREVIEW_CHARACTERS + "..."),
        (b"x" + "🚲".encode() * 1000, "x" + "🚲" * (PREVIEW_CHARACTERS - 1) + "..."),
        (b"\xff\xfe", "0xfffe"),
        (b"\0\0\0\x01\xff" * 100, "0x" + "00000001ff" * 4 + "..."),
        (b"abc\xff", "0x616263ff"),
    ],
)
def test_preview_shows(data, shown):
    assert preview(data) == shown


@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace"))))
def test_preview_is_one_short_line_that_a_terminal_only_prints(data):
    shown = preview(data)

    assert shown.isprintable()
    assert len(shown) <= PREVIEW_CHARACTERS + 5


def test_table_has_a_line_for_each_letter_also_for_those_that_say_nothing():
    bare = DeadLetter(KafkaRecord("dlq", 0, 7, None, b"broken", None))
    told = DeadLetter(
        KafkaRecord(
            "dlq", 1, 8, b"k", b"x", 10**17,
            headers=tuple(
                (f"__connect.errors.{name}", value.encode())
                for name, value in {
                    "topic": "orders", "partition": "2", "offset": "41", "connector.name": "sink", "stage": "TASK_PUT",
                    "class.name": "org.example.Sink", "exception.message": "first line\nsecond " + "y" * 500,
                }.items()
            ),
        )
    )  # fmt: skip

    lines = letter_table([bare, told]).lines()

    assert lines[1].split() == ["0@7", "?", "?", "?", "?", "?", "6", "B", "broken", "?"]
    assert lines[2].startswith("1@8     orders-2@41  TASK_PUT  Sink")
    assert "first line\\nsecond yyy" in lines[2]
    assert lines[2].endswith("...")
    assert len({line.find("VALUE") for line in lines[:1]}) == 1
