import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import DataError
from airflow_connect.layout.time.iso_timestamps import parse_iso_ms

# Joda-Time tells a little more precisely here where the text goes wrong, and lets one year overflow.
OTHER_MESSAGE = {"2024-12-30T12:34:56.789+05:3", "T", "TZ"}
OVERFLOWS = {"292278994-01-01"}


def test_texts_mean_what_joda_read_in_them(recorded):
    for row in recorded("iso"):
        text = row["text"]
        if "ms" in row and text not in OVERFLOWS:
            assert parse_iso_ms(text) == row["ms"], text
            continue
        with pytest.raises(DataError) as caught:
            parse_iso_ms(text)
        if text not in OTHER_MESSAGE | OVERFLOWS:
            assert caught.value.message == row["error"]


@given(st.datetimes(timezones=st.timezones()))
def test_every_isoformat_of_python_is_read(moment):
    offset = moment.utcoffset()
    assert offset is not None
    if offset.microseconds or abs(offset.total_seconds()) % 60:
        return  # offsets with seconds have their own recordings
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert parse_iso_ms(whole.isoformat()) == round(whole.timestamp() * 1000)


def test_digits_of_other_scripts_are_not_numbers():
    with pytest.raises(DataError, match="Invalid format"):
        parse_iso_ms("٢٠٢٤-01-01")
