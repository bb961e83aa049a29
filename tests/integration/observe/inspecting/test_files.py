"""Published files of sinks, as their stores list them: on S3 and in HDFS. Local ones: tests/integration/cli."""

from __future__ import annotations

import pytest

from airflow_connect.observe.inspecting.files import file_system_for, published_files
from airflow_connect.observe.inspecting.objects import records_of
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.s3 import numbered

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_files_of_a_sink_are_found_and_read(store, kafka, request, make_topic, make_sink, produce):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 8, 2)[0])
    hdfs = request.getfixturevalue("hdfs") if store == "hdfs" else None
    sink = make_sink(topic, flush_size="2") if hdfs is None else hdfs_sink(kafka, hdfs, topic, flush_size="2")
    sink.run()

    found = sorted(published_files(sink.spec()), key=lambda file: (file.partition, file.start))

    assert [(f.topic, f.partition, f.start) for f in found] == [(topic, p, start) for p in (0, 1) for start in (0, 2)]
    assert all(file.name.startswith(f"{store}://") and file.size_bytes > 0 for file in found)
    latest = max(file.modified_ms for file in found)
    assert list(published_files(sink.spec(), latest + 60_000)) == []
    with file_system_for(sink.spec()) as files:
        numbers = [record["n"] for file in found for record in records_of(files, file.name, 10)]
    assert sorted(numbers) == list(range(8))
