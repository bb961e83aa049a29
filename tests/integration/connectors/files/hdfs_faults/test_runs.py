"""Runs on a real HDFS that fails: an error tells why, the next run continues, nothing is lost or duplicated."""

from __future__ import annotations

import functools
import json
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_connect.connectors.files.hdfs import config as hdfs_config
from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.stores.hdfs.publish import HdfsPublisher
from airflow_connect.stores.hdfs.settings import HdfsSettings
from tests.devstack.hdfs import HdfsCluster
from tests.integration.connectors.files.hdfs_faults.conftest import MakeHdfsSink
from tests.support import hdfs_files
from tests.support.copies.hdfs import HdfsSink
from tests.support.copies.s3 import InProcessEngine, numbered

pytestmark = [pytest.mark.integration, pytest.mark.crash]

NEXT_RUN = "the next run continues where this one ended"


class DisturbedEngine(InProcessEngine):
    """Does something when the tasks have staged everything, or before they begin."""

    def __init__(self, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._before, self._after = before, after

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        if self._before is not None:
            self._before()
        reports = super().run(settings, tasks)
        if self._after is not None:
            self._after()
        return reports


def refused(sink: HdfsSink, code: str, **overrides: Any) -> dict[str, Any]:
    """A run that must fail with this code and a sentence; returns its error."""
    report = sink.try_run(**overrides)
    assert report.status == "failed"
    assert report.error is not None
    assert report.error["code"] == code, report.error
    assert report.error["message"].endswith(".")
    assert "\tat " not in report.error["message"]
    return report.error


@pytest.fixture
def topic(make_topic: Any, produce: Any) -> tuple[str, list[Any]]:
    """A topic of two partitions with 60 records, and their values."""
    name = make_topic(partitions=2)
    rows, values = numbered(0, 60, 2)
    produce(name, rows)
    return name, values


def ends_well(sink: HdfsSink, values: Sequence[Any]) -> None:
    """The next runs copy what is missing; the last finds nothing."""
    sink.engine = InProcessEngine()
    sink.run()
    assert sink.run().status == "empty"
    sink.assert_exactly_once(values)


@contextmanager
def safe_mode(cluster: HdfsCluster) -> Iterator[None]:
    cluster.admin("-safemode", "enter")
    try:
        yield
    finally:
        cluster.admin("-safemode", "leave")


def test_safe_mode_fails_the_run_before_and_after_the_copy(cluster, impatient, make_hdfs_sink: MakeHdfsSink, topic):
    sink = make_hdfs_sink(topic[0], flush_size="10")
    sink.engine = DisturbedEngine(after=lambda: cluster.admin("-safemode", "enter"))
    try:
        late = refused(sink, "hdfs.safe_mode")
        early = refused(sink.second(name=sink.name), "hdfs.safe_mode")
    finally:
        cluster.admin("-safemode", "leave")

    assert NEXT_RUN in late["suggestion"]
    assert early["retriable"]
    assert late["retriable"]
    ends_well(sink, topic[1])


def test_name_quota_fails_the_run_and_a_larger_one_lets_it_go_on(cluster, impatient, make_hdfs_sink, topic):
    sink = make_hdfs_sink(topic[0], flush_size="4")
    hdfs, path = hdfs_files.split(sink.base)
    hdfs.mkdirs(path, create_parent=True)
    # The topic's directories, staged and published, and a few files fit; not all of them.
    cluster.set_quota(path, names=14)
    error = refused(sink, "hdfs.quota")
    cluster.set_quota(path, names=-1)

    assert "NSQuotaExceededException" in error["message"]
    assert NEXT_RUN in error["suggestion"]
    ends_well(sink, topic[1])


def test_space_quota_is_found_before_anything_is_copied(cluster, impatient, make_hdfs_sink, topic):
    sink = make_hdfs_sink(topic[0])
    hdfs, path = hdfs_files.split(sink.base)
    hdfs.mkdirs(path, create_parent=True)
    cluster.set_quota(path, space_bytes=1 << 20)
    error = refused(sink, "hdfs.quota")
    cluster.set_quota(path, space_bytes=-1)

    assert "DSQuotaExceededException" in error["message"]
    assert sink.engine.jobs == 0
    ends_well(sink, topic[1])


def test_permission_is_found_before_anything_is_copied(cluster, impatient, make_hdfs_sink, topic, monkeypatch):
    sink = make_hdfs_sink(topic[0])
    hdfs, path = hdfs_files.split(sink.base)
    hdfs.mkdirs(path, create_parent=True)
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    error = refused(sink, "hdfs.forbidden")
    cluster.set_owner(path, "bob")

    assert "user=bob" in error["message"]
    assert sink.engine.jobs == 0
    ends_well(sink, topic[1])


def test_permission_lost_between_copy_and_publish_is_said_and_the_manifest_survives(
    cluster, impatient, make_hdfs_sink, topic, monkeypatch
):
    sink = make_hdfs_sink(topic[0], flush_size="10")
    hdfs, path = hdfs_files.split(sink.base)
    hdfs.mkdirs(path, create_parent=True)
    cluster.set_owner(path, "bob")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    sink.engine = DisturbedEngine(after=lambda: cluster.set_owner(f"{path}/topics", "alice"))
    error = refused(sink, "hdfs.forbidden")
    assert sink.view().manifest is not None
    cluster.set_owner(f"{path}/topics", "bob")

    assert error["suggestion"]
    ends_well(sink, topic[1])


def test_deleted_temporary_files_are_copied_again(impatient, make_hdfs_sink, topic):
    sink = make_hdfs_sink(topic[0], flush_size="10")

    def delete_one() -> None:
        if sink.engine.jobs == 1:
            hdfs, path = hdfs_files.split(f"{sink.base}/{sink.uploads()[0]}")
            assert hdfs.delete(path)

    sink.engine = DisturbedEngine(after=delete_one)
    report = sink.run()

    assert (report.records, sink.engine.jobs) == (60, 2)
    sink.engine = InProcessEngine()
    assert sink.run().status == "empty"
    sink.assert_exactly_once(topic[1])


@pytest.mark.parametrize("publisher", ["native", "jvm"])
def test_run_whose_name_node_never_answers_ends_with_the_first_contact(
    publisher: str, monkeypatch: pytest.MonkeyPatch, make_hdfs_sink: MakeHdfsSink, topic: tuple[str, list[Any]]
) -> None:
    """Every other request would wait for ten minutes, so nothing may be asked for once the first one failed."""
    changed = functools.partial(HdfsSettings, answer_s=600, retry_s=600, first_answer_s=1)
    monkeypatch.setattr(hdfs_config, "HdfsSettings", changed)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = make_hdfs_sink(topic[0])
        address = f"hdfs://127.0.0.1:{silent.getsockname()[1]}/base"
        error = refused(sink, "hdfs.no_answer", store_url=address, hdfs_publisher=publisher)
    assert "store.url names the RPC port" in error["suggestion"]


def test_foreign_file_stops_the_run_until_it_is_moved_away(impatient, make_hdfs_sink, topic, produce):
    sink = make_hdfs_sink(topic[0], flush_size="10")
    sink.run()
    rows, more = numbered(60, 80, 2)
    produce(topic[0], rows)
    url = f"{sink.base}/topics/{topic[0]}/partition=0/{topic[0]}+0+0000000030+0000000039.json"
    hdfs_files.put(url, b'{"n": -1}\n')
    error = refused(sink, "publish.conflict")
    again = refused(sink, "publish.conflict")
    assert url in error["message"]
    assert again["message"] == error["message"]
    assert hdfs_files.get(url) == b'{"n": -1}\n'
    hdfs, path = hdfs_files.split(url)
    hdfs.delete(path)

    ends_well(sink, [*topic[1], *more])


@pytest.mark.parametrize("when", ["before", "after"] if os.environ.get("AIRFLOW_CONNECT_SOAK") else ["after"])
def test_restarted_name_node_is_waited_for(cluster, patient, make_hdfs_sink, topic, when):
    """Before the tasks stage, and after it, before the driver publishes."""
    sink = make_hdfs_sink(topic[0], flush_size="10")
    restarting: list[threading.Thread] = []

    def restart() -> None:
        cluster.namenode.kill()
        restarting.append(threading.Thread(target=cluster.namenode.restart))
        restarting[-1].start()

    sink.engine = DisturbedEngine(**{when: restart})
    report = sink.run()
    restarting[0].join()
    cluster.wait_until_writable()

    assert report.records == 60
    ends_well_after(sink, topic[1])


def ends_well_after(sink: HdfsSink, values: Sequence[Any]) -> None:
    """Everything was copied already."""
    sink.engine = InProcessEngine()
    assert sink.run().status == "empty"
    sink.assert_exactly_once(values)


def test_data_node_that_is_away_or_full_fails_the_run_until_it_has_room(cluster, impatient, make_hdfs_sink, topic):
    sink = make_hdfs_sink(topic[0], flush_size="30")
    node = cluster.datanodes[0]
    sink.engine = DisturbedEngine(before=node.kill)
    try:
        away = sink.try_run().error
        node.reconfigure(dfs_datanode_du_reserved=str(1 << 50))
        node.restart()
        hdfs_files.wait_until_full(cluster)
        sink.engine = InProcessEngine()
        full = refused(sink, "hdfs.no_data_node")
    finally:
        node.reconfigure(dfs_datanode_du_reserved="0")
        node.restart()
        cluster.wait_until_writable()

    assert away is not None
    assert away["code"] == "hdfs.no_data_node" and not away.get("config_path"), away
    assert "DataNode" in away["message"] and "dfsadmin -report" in away["suggestion"]
    assert away["retriable"]
    assert NEXT_RUN in away["suggestion"]
    assert "free space" in full["suggestion"]
    assert sink.keys() == []
    ends_well(sink, topic[1])


def test_data_node_that_comes_back_is_waited_for_also_by_files_that_grow(
    cluster, patient, make_hdfs_sink, make_topic, produce
):
    name = make_topic(partitions=1)
    values = [{"n": n, "pad": uuid.uuid4().hex * 3000} for n in range(40)]
    produce(name, [(0, None, json.dumps(value)) for value in values])
    sink = make_hdfs_sink(name)

    def restart() -> None:
        cluster.datanodes[0].kill()
        threading.Thread(target=cluster.datanodes[0].restart).start()

    sink.engine = DisturbedEngine(before=restart)
    report = sink.try_run()
    cluster.wait_until_writable()

    # A file that had begun to be written is lost with its node, which Spark's next attempt of the task repeats.
    assert report.status == "done" or (report.error or {})["retriable"], report.error
    if report.status == "failed":
        ends_well(sink, values)
    else:
        ends_well_after(sink, values)


def test_two_runs_at_once_copy_everything_once(make_hdfs_sink, topic):
    first = make_hdfs_sink(topic[0], flush_size="7")
    second = first.second(name=first.name)
    second.name = first.name
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda sink: sink.try_run(), (first, second)))

    assert all(r.status in ("done", "empty") or r.error["type"] == "FencedError" for r in reports), reports
    first.engine = InProcessEngine()
    first.run()
    assert first.run().status == "empty"
    first.assert_exactly_once(topic[1])


def test_zombie_that_renames_late_changes_nothing(monkeypatch, make_hdfs_sink, topic):
    sink = make_hdfs_sink(topic[0], flush_size="10")
    late: list[tuple[HdfsPublisher, Any]] = []
    publish = HdfsPublisher.publish

    def die(publisher: HdfsPublisher, files: Any, progress: Any) -> Any:
        late.append((publisher, files))
        publish(publisher, files[:2], progress)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HdfsPublisher, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            sink.try_run()
    sink.run()
    before = sink.identities()
    ((zombie, files),) = late
    publish(zombie, files, lambda _: None)

    assert sink.identities() == before
    ends_well_after(sink, topic[1])
