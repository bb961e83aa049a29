"""What is HDFS's own: name services, names it forbids, directories of any size, files that grow, empty directories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.hdfs import file_trees
from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.errors import AccessError, ConfigError, DataError, PublishConflictError, UnavailableError
from airflow_connect.stores.hdfs import files as file_requests
from airflow_connect.stores.hdfs.publish import HdfsPublisher
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.staging import HdfsStager
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.store import FileIdentity, Outcome
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files

pytestmark = [pytest.mark.integration, pytest.mark.soak]

MANY = 100_000 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 2_000


@dataclass
class Place:
    """A directory of its own, and the two roles on it."""

    url: str
    settings: HdfsSettings
    stager: HdfsStager
    publisher: HdfsPublisher

    def stage(self, *keys: str, data: bytes = b"bytes") -> list[StagedFile]:
        futures = []
        for key in keys:
            file = self.stager.open(FileIdentity(key, "t", 0, 0, root="t/"))
            file.write(data)
            futures.append(file.close(1, 1))
        return [future.result(120) for future in futures]

    def publish(self, files: list[StagedFile], **settings: Any) -> dict[str, Outcome]:
        return HdfsPublisher(replace(self.settings, **settings)).publish(files, lambda _: None)


@pytest.fixture
def place(hdfs: HdfsCluster, unique_name: str) -> Iterator[Place]:
    settings = HdfsSettings(f"{hdfs.url}/{unique_name}", piece_bytes=1 << 20, retry_s=30)
    stager = HdfsStager(settings)
    yield Place(settings.url, settings, stager, HdfsPublisher(settings, probe_prefix="t/"))
    stager.close()


def test_publishing_and_aborting_leave_no_empty_directories(place: Place) -> None:
    files = place.stage("t/a/f1", "t/a/f2", "t/b/c/f3", "t/d/f4")
    place.publish(files[:1])
    assert hdfs_files.exists(f"{place.url}/t/+tmp/a")
    place.publish(files[1:3])
    assert not hdfs_files.exists(f"{place.url}/t/+tmp/a")
    place.publisher.abort(files[3:])

    assert not hdfs_files.exists(f"{place.url}/t/+tmp")
    assert sorted(hdfs_files.all_files(place.url)) == ["t/a/f1", "t/a/f2", "t/b/c/f3"]


def test_directory_of_many_published_files_costs_a_sweep_nothing(place: Place) -> None:
    hdfs, path = hdfs_files.split(place.url)
    with ThreadPoolExecutor(64) as pool:
        for _ in pool.map(lambda n: hdfs.create(f"{path}/t/p/f{n:06}").close(), range(MANY)):
            pass
    (staged,) = place.stage("t/p/new")
    asked: list[str] = []
    walk = place.publisher._files.walk
    place.publisher._files.walk = lambda directory: (asked.append(directory), walk(directory))[1]  # type: ignore[method-assign]
    found = list(place.publisher.list_staged(["t/p/"]))

    assert [f.key for f in found] == ["t/p/new"]
    assert all("+tmp" in directory for directory in asked)
    assert place.publish([staged]) == {"t/p/new": Outcome.PUBLISHED}


def test_large_files_that_grow_together_arrive_whole(place: Place) -> None:
    pieces = [os.urandom(700_000) for _ in range(6)]
    stager = HdfsStager(replace(place.settings, max_streams=2))
    opened = [stager.open(FileIdentity(f"t/f{n}", "t", 0, n, root="t/")) for n in range(5)]
    for piece in pieces:
        for file in opened:
            file.write(piece)
            if file is opened[-1]:
                file.spill()
    staged = [future.result(120) for future in [file.close(1, 1) for file in opened]]
    stager.close()
    place.publish(staged)

    assert hdfs_files.visible_files(place.url) == {f"t/f{n}": b"".join(pieces) for n in range(5)}


def test_open_directories_hold_no_leases(place: Place, hdfs: HdfsCluster) -> None:
    before = hdfs.metrics()["FilesTotal"]
    opened = [place.stager.open(FileIdentity(f"t/p={n}/f", "t", 0, n, root="t/")) for n in range(2_000)]
    for file in opened:
        file.write(b"x" * 1000)
    assert hdfs.metrics()["FilesTotal"] < before + 1_000  # Other tests write on this server, too.
    for file in opened:
        file.abort()


def test_file_that_was_deleted_under_the_writer_is_written_again_whole(place: Place) -> None:
    file = place.stager.open(FileIdentity("t/f", "t", 0, 0, root="t/"))
    write, calls = place.stager.files.write, []

    def disturbed(path: str, chunks: Any, **options: Any) -> None:
        def once() -> Iterator[bytes]:
            calls.append(path)
            yield from chunks()
            if len(calls) == 1:
                assert place.publisher._files.delete(path)

        write(path, once, **options)

    place.stager.files.write = disturbed  # type: ignore[method-assign]
    file.write(b"abc")
    staged = file.close(1, 1).result(120)
    place.publish([staged])

    assert len(calls) == 2
    assert hdfs_files.visible_files(place.url) == {"t/f": b"abc"}


def test_name_that_hdfs_forbids_is_said_with_a_way_out(place: Place) -> None:
    with pytest.raises(DataError, match="Invalid path name") as caught:
        place.stage("t/at=12:30/f")
    assert "':'" in caught.value.suggestion


def test_file_where_a_directory_has_to_be(place: Place) -> None:
    hdfs_files.put(f"{place.url}/t", b"in the way")
    with pytest.raises(AccessError) as caught:
        place.stage("t/a/f")
    assert caught.value.code == "hdfs.not_a_directory"
    with pytest.raises(AccessError):
        place.publisher.preflight()


def test_directory_under_the_name_of_a_file_is_a_conflict(place: Place) -> None:
    files = place.stage("t/a/f")
    hdfs, path = hdfs_files.split(f"{place.url}/t/a/f/inner")
    hdfs.mkdirs(path, create_parent=True)
    with pytest.raises(PublishConflictError, match="holds a directory"):
        place.publish(files)


def test_name_service_is_found_in_the_configuration_folder(hdfs: HdfsCluster, place: Place, tmp_path: Path) -> None:
    """Two NameNodes of which one is away: the client goes to the other."""
    (nobody,) = free_ports(1)
    names = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "nn1,nn2",
        "dfs.namenode.rpc-address.lake.nn1": f"127.0.0.1:{nobody}",
        "dfs.namenode.rpc-address.lake.nn2": hdfs.url.removeprefix("hdfs://"),
    }
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in names.items())
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
    path = place.url.removeprefix(hdfs.url)
    settings = HdfsSettings(f"hdfs://lake{path}", conf_dir=str(tmp_path), retry_s=30)
    HdfsPublisher(settings, probe_prefix="t/").preflight()
    stager = HdfsStager(settings)
    file = stager.open(FileIdentity("t/f", "t", 0, 0, root="t/"))
    file.write(b"abc")
    staged = file.close(1, 1).result(60)
    stager.close()

    assert HdfsPublisher(settings).publish([staged], lambda _: None) == {"t/f": Outcome.PUBLISHED}
    assert hdfs_files.visible_files(place.url) == {"t/f": b"abc"}


def test_unknown_name_service_and_missing_folder_name_their_keys(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as unknown:
        HdfsPublisher(HdfsSettings("hdfs://nowhere", conf_dir=str(tmp_path))).preflight()
    with pytest.raises(ConfigError) as missing:
        HdfsPublisher(HdfsSettings("hdfs://nowhere", conf_dir=str(tmp_path / "no"))).preflight()

    assert (unknown.value.code, missing.value.code) == ("hdfs.name_service", "hdfs.conf_dir")
    assert "hadoop.conf.dir" in unknown.value.suggestion
    assert missing.value.config_path == "hadoop.conf.dir"


def test_nobody_at_the_address_of_a_first_run_is_told_as_soon_as_in_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look for what Confluent's sink left comes before the preflight."""
    (nobody,) = free_ports(1)
    monkeypatch.setattr(file_requests, "FIRST_RETRY_S", 0.5)
    started = monotonic()
    with pytest.raises(UnavailableError) as caught:
        file_trees.open_tree(HdfsStore(HdfsSettings(f"hdfs://127.0.0.1:{nobody}")))
    assert (caught.value.code, caught.value.config_path) == ("hdfs.unreachable", "store.url")
    assert "DataNode" not in str(caught.value)
    assert monotonic() - started < 60


def test_nobody_at_the_address_is_unavailable_within_the_patience(tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    started = monotonic()
    with pytest.raises(UnavailableError) as caught:
        HdfsPublisher(HdfsSettings(f"hdfs://127.0.0.1:{nobody}", retry_s=1)).preflight()

    assert caught.value.code == "hdfs.unreachable"
    assert caught.value.retriable
    assert monotonic() - started < 60
