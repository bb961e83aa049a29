"""Large values do not wait a thousand at a time for their encoder."""

from __future__ import annotations

from airflow_connect.connectors.files.shared.writing.open_file import (
    BATCH_BYTES,
    FileStream,
    StreamSettings,
    estimate_size,
)
from airflow_connect.formats.json_lines import JsonFormat
from airflow_connect.stores.store import FileIdentity
from tests.integration.connectors.files.s3.fake_store import MemoryStager


def test_values_are_encoded_once_they_make_a_megabyte() -> None:
    stager = MemoryStager()
    stream = FileStream(stager, StreamSettings(JsonFormat()), FileIdentity("k", "t", 0, 0), None)
    value = {"text": "x" * 200_000}

    sizes = []
    for _ in range(12):
        stream.append(value)
        sizes.append(stream._values_bytes)
    stream.close(12, 12).result()

    assert max(sizes) < BATCH_BYTES
    assert sizes.count(0) == 2
    assert stager.bodies["k"].count(b"\n") == 12


def test_estimate_of_a_value_grows_with_everything_inside() -> None:
    flat, nested = {"a": "x" * 1000}, {"a": [b"y" * 1000, {"b": "x" * 1000}], "n": 1}

    assert 1000 < estimate_size(flat) < 1500
    assert 2000 < estimate_size(nested) < 3000
    assert estimate_size(5) < 100
