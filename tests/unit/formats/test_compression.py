"""Gzip streams and sinks: readable by everybody, the same bytes every time, dense, and small while open."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError
from airflow_connect.formats.compressed_sink import GzipSink
from airflow_connect.formats.compression import PIECE_BYTES, GzipStream
from airflow_connect.formats.spill import SpillArea
from tests.support.session.searching import examples
from tests.unit.formats.connect_values import Sink
from tests.unit.formats.test_spill import used_bytes

LEVELS = range(-1, 10)


def _json_lines(records: int) -> bytes:
    chance = random.Random(7)
    return b"".join(
        json.dumps(
            {
                "id": number,
                "ts": 1_700_000_000_000 + 37 * number,
                "city": chance.choice(["Berlin", "Paris", "Rome"]),
                "amount": round(chance.random() * 1000, 2),
                "pad": f"{chance.getrandbits(128):x}",
            }
        ).encode()
        + b"\n"
        for number in range(records)
    )


@pytest.mark.parametrize("level", LEVELS)
def test_gzip_stream_every_level_is_one_member_that_zlib_reads(level: int) -> None:
    data = _json_lines(5000)
    stream = GzipStream(level)
    packed = stream.compress(data[:100_000]) + stream.compress(data[100_000:200_000]) + stream.finish(data[200_000:])
    reader = zlib.decompressobj(31)
    assert reader.decompress(packed) == data
    assert reader.eof
    assert reader.unused_data == b""
    assert gzip.decompress(packed) == data


@pytest.mark.parametrize("level", LEVELS)
def test_gzip_has_no_time_and_is_not_larger_than_zlibs_level(level: int) -> None:
    data = _json_lines(10_000)
    packed = GzipStream(level).finish(data)
    assert packed[4:8] == b"\0\0\0\0"
    assert packed == GzipStream(level).finish(bytearray(data))
    tolerance = 1.08 if level == -1 else 1.005
    assert len(packed) <= tolerance * len(zlib.compress(data, level, 31))


@pytest.mark.parametrize("level", LEVELS)
def test_gzip_empty_file_is_valid(level: int) -> None:
    assert gzip.decompress(GzipStream(level).finish(b"")) == b""


@pytest.mark.parametrize("level", [-2, 10])
def test_gzip_unknown_level_is_a_config_error(level: int) -> None:
    with pytest.raises(ConfigError, match=f"level {level} does not exist") as raised:
        GzipStream(level)
    assert raised.value.config_path == "s3.compression.level"


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.tuples(st.integers(0, 2 * PIECE_BYTES + 9), st.booleans()), max_size=8),
    st.sampled_from([-1, 0, 6]),
)
def test_gzip_sink_any_cut_and_any_spill_gives_the_same_file(cuts: list[tuple[int, bool]], level: int) -> None:
    area = SpillArea()
    source = _json_lines(20_000)
    one, other = Sink(), Sink()
    cut_up, whole = GzipSink(one, level, area), GzipSink(other, level, area)
    position = 0
    for length, spill in cuts:
        cut_up.write(source[position : position + length])
        position = min(position + length, len(source))
        if spill:
            cut_up.spill()
            assert cut_up.buffered_bytes == 0
        assert cut_up.buffered_bytes < GzipStream(level).piece_bytes
    cut_up.finish()
    whole.write(memoryview(source)[:position])
    whole.finish()
    assert gzip.decompress(one.getvalue()) == source[:position]
    assert one.getvalue() == other.getvalue()
    assert used_bytes(area) == 0
    area.close()


def test_gzip_sink_thousands_open_hold_only_what_was_written(tmp_path: Path) -> None:
    area = SpillArea(str(tmp_path))
    sinks = [GzipSink(Sink(), area=area) for _ in range(2000)]
    for sink in sinks:
        sink.write(b"one line of text\n" * 10)
    assert sum(s.buffered_bytes for s in sinks) == 2000 * 170
    for sink in sinks:
        sink.spill()
    assert sum(s.buffered_bytes for s in sinks) == 0
    for sink in sinks:
        sink.finish()
        inner = sink._sink
        assert isinstance(inner, Sink)
        assert gzip.decompress(inner.getvalue()) == b"one line of text\n" * 10
    area.close()
