"""Fixtures of tests that run connectors in this process."""

import pytest

from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.local import local_sink
from tests.support.copies.s3 import numbered
from tests.support.steps import Steps


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


@pytest.fixture(params=["s3", "hdfs", "local"])
def every_sink(request, kafka, make_topic, produce, tmp_path):
    """A connector with 30 records in 3 partitions to copy into 9 files, by two tasks; one for each kind of store."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    if request.param == "local":
        return local_sink(kafka, tmp_path / "out", topic, flush_size="4")
    if request.param == "hdfs":
        return hdfs_sink(kafka, request.getfixturevalue("hdfs"), topic, flush_size="4")
    return request.getfixturevalue("make_sink")(topic, flush_size="4")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the servers."""
    for item in items:
        if "tests/integration/runtime/sink" in str(item.path):
            item.add_marker(pytest.mark.integration)
