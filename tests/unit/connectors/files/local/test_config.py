"""Settings of the local sink that end in names of directories."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.files.local.config import LocalSinkConfig
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.errors import ConfigError

LOCAL = {
    "name": "c", "connector.class": "LocalSink", "topics": "t", "store.url": "file:///data", "flush.size": "3",
    "format.class": "JsonFormat", "behavior.on.null.values": "write", "store.kafka.keys": "true",
}  # fmt: skip
S3 = {
    **LOCAL, "connector.class": "io.confluent.connect.s3.S3SinkConnector", "s3.bucket.name": "b", "store.url": "",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
}  # fmt: skip
TOMBSTONES = "tombstone.encoded.partition"


@pytest.mark.parametrize(("given", "directory"), [("gone", "gone"), ("gone/", "gone"), ("/a//b/", "a/b")])
def test_tombstone_directory_has_no_slashes_without_meaning(given: str, directory: str) -> None:
    assert LocalSinkConfig.from_config({**LOCAL, TOMBSTONES: given}).tombstone_directory == directory


@pytest.mark.parametrize("given", ["/", "//", "..", "a/../../b", "./a"])
def test_tombstone_directory_that_names_none_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="does not name a directory") as caught:
        LocalSinkConfig.from_config({**LOCAL, TOMBSTONES: given})
    assert caught.value.config_path == TOMBSTONES


def test_tombstone_directory_of_s3_keeps_its_slashes_but_leads_nowhere_else() -> None:
    assert S3SinkConfig.from_config({**S3, TOMBSTONES: "gone/"}).tombstone_directory == "gone/"
    with pytest.raises(ConfigError, match="does not name a directory"):
        S3SinkConfig.from_config({**S3, TOMBSTONES: "../gone"})
