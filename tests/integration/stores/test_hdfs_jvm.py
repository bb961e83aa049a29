"""HDFS published by Hadoop's own client: what every store must do, and what is the JVM's own."""

from __future__ import annotations

import getpass
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.connectors.files.hdfs.file_trees import Found, open_tree
from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.runtime.engine.hadoop_jvm import HadoopJvm, start_hadoop_jvm
from airflow_connect.stores.hdfs.jvm import JvmConnection
from airflow_connect.stores.hdfs.publish import HdfsPublisher
from airflow_connect.stores.hdfs.settings import JVM, HdfsSettings
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.store import Store
from tests.devstack.hdfs import HdfsCluster
from tests.integration.stores import test_hdfs_conformance
from tests.support import hdfs_files

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shared_jvm(hdfs: HdfsCluster) -> Iterator[JvmConnection]:
    """Keeps the JVM that all stores on this cluster share from ending with each of them."""
    connection = JvmConnection(HdfsSettings(hdfs.url, publisher=JVM), start_hadoop_jvm)
    connection.client()
    yield connection
    connection.close()


@pytest.mark.usefixtures("shared_jvm")
class TestHdfsStoreOfTheJvm(test_hdfs_conformance.TestHdfsStore):
    many_files: ClassVar[int] = 30
    large_bytes: ClassVar[int] = 9 << 20

    def open_store(self, target: Any) -> Store:
        return HdfsStore(HdfsSettings(target, piece_bytes=4 << 20, retry_s=20, publisher=JVM), start_hadoop_jvm)

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        (nobody,) = free_ports(1)
        settings = HdfsSettings(f"hdfs://127.0.0.1:{nobody}", retry_s=0, publisher=JVM)
        yield HdfsStore(settings, start_hadoop_jvm)
        yield HdfsStore(replace(settings, conf_dir="/no/such/folder"), start_hadoop_jvm)
        yield HdfsStore(settings)


@pytest.fixture
def settings(hdfs: HdfsCluster, unique_name: str) -> HdfsSettings:
    return HdfsSettings(f"{hdfs.url}/{unique_name}", retry_s=1, publisher=JVM)


def refusal(settings: HdfsSettings, start: Any = start_hadoop_jvm) -> ConnectError:
    """What the preflight says."""
    publisher = HdfsStore(settings, start).publisher(probe_prefix="t/", overwrite=False)
    with pytest.raises(ConnectError) as caught:
        publisher.preflight()
    publisher.close()
    assert caught.value.message.endswith(".")
    assert "\tat " not in caught.value.message
    return caught.value


def test_one_jvm_serves_all_who_log_in_alike_and_ends_with_the_last(settings: HdfsSettings) -> None:
    started: list[HadoopJvm] = []

    def start(folders: Any, options: Any) -> HadoopJvm:
        started.append(start_hadoop_jvm(folders, options))
        return started[-1]

    # A folder of its own makes it another login than that of the shared JVM.
    store = HdfsStore(replace(settings, conf_dir=os.getcwd()), start)
    publishers = [store.publisher(probe_prefix="t/", overwrite=False) for _ in range(2)]
    for publisher in publishers:
        publisher.preflight()
    publishers[0].close()
    publishers[0].close()
    publishers[1].mark(["t/_SUCCESS"])
    (jvm,) = started
    assert jvm.process.poll() is None
    publishers[1].close()

    assert jvm.process.poll() is not None
    assert hdfs_files.exists(f"{settings.url}/t/_SUCCESS")


def test_jvm_that_dies_fails_the_run_with_a_sentence(settings: HdfsSettings) -> None:
    started: list[HadoopJvm] = []

    def start(folders: Any, options: Any) -> HadoopJvm:
        started.append(start_hadoop_jvm(folders, options))
        return started[-1]

    publisher = HdfsStore(replace(settings, conf_dir=os.getcwd()), start).publisher(probe_prefix="", overwrite=False)
    publisher.preflight()
    os.kill(started[0].process.pid, signal.SIGKILL)
    started[0].process.wait()
    with pytest.raises(UnavailableError) as caught:
        publisher.mark(["t/_SUCCESS"])
    publisher.close()

    assert caught.value.code == "hdfs.jvm"
    assert "the next run continues where this one ended" in caught.value.suggestion


def test_jvm_that_does_not_start_says_so(settings: HdfsSettings) -> None:
    mine = replace(settings, conf_dir=os.getcwd())
    error = refusal(mine, lambda folders, _: start_hadoop_jvm(folders, ["-XX:NoSuchOption"]))

    assert (error.code, "exit code 1" in error.message) == ("hdfs.jvm", True)


def test_configuration_of_hadoop_describes_the_name_service(settings: HdfsSettings, tmp_path: Path) -> None:
    address = settings.address.removeprefix("hdfs://")
    (nobody,) = free_ports(1)
    described = {
        "dfs.nameservices": "mycluster",
        "dfs.ha.namenodes.mycluster": "nn1,nn2",
        "dfs.namenode.rpc-address.mycluster.nn1": f"127.0.0.1:{nobody}",
        "dfs.namenode.rpc-address.mycluster.nn2": address,
        "dfs.client.failover.proxy.provider.mycluster": "org.apache.hadoop.hdfs.server.namenode.ha."
        "ConfiguredFailoverProxyProvider",
    }
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in described.items())
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    path = settings.path("").rstrip("/")
    named = replace(settings, url=f"hdfs://mycluster{path}", conf_dir=str(tmp_path), retry_s=20)
    publisher = HdfsStore(named, start_hadoop_jvm).publisher(probe_prefix="t/", overwrite=False)
    publisher.preflight()
    publisher.mark(["t/_SUCCESS"])
    publisher.close()

    assert hdfs_files.visible_files(settings.url) == {"t/_SUCCESS": b""}


def test_unknown_name_service_is_said(settings: HdfsSettings) -> None:
    error = refusal(replace(settings, url="hdfs://no-such-service"))

    assert isinstance(error, ConfigError)
    assert error.code == "hdfs.name_service"
    assert "no-such-service" in error.message


def test_keytab_that_is_not_there_is_a_failed_login(
    settings: HdfsSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "krb5.conf").write_text("[libdefaults]\ndefault_realm = EXAMPLE.ORG\n")
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    keytab = str(tmp_path / "connect.keytab")
    error = refusal(replace(settings, principal="connect/_HOST@EXAMPLE.ORG", keytab=keytab))

    assert isinstance(error, AccessError)
    assert error.code == "hdfs.login"
    assert "connect.hdfs.keytab" in error.suggestion


def test_permission_and_quota_are_refused_as_by_the_other_client(
    hdfs: HdfsCluster, settings: HdfsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = replace(settings, conf_dir=os.getcwd())  # a JVM of its own, for a user of its own
    client, path = hdfs_files.split(settings.url)
    client.mkdirs(path)
    hdfs.set_quota(path, names=1)
    assert refusal(mine).code == "hdfs.quota"
    hdfs.set_quota(path, names=-1)
    hdfs.set_owner(path, getpass.getuser())
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody-here")
    assert refusal(mine).code == "hdfs.forbidden"


@pytest.mark.usefixtures("shared_jvm")
def test_take_over_reads_and_moves_by_the_jvm_too(settings: HdfsSettings) -> None:
    hdfs_files.put(f"{settings.url}/logs/t/0/log", b"a log")
    hdfs_files.put(f"{settings.url}/topics/+tmp/x_tmp", b"x" * 10)
    hdfs_files.put(f"{settings.url}/topics/taken", b"")
    tree = open_tree(HdfsStore(settings, start_hadoop_jvm))
    log, temporary = tree.path("logs/t/0/log"), tree.path("topics/+tmp/x_tmp")
    tree.settle(log)

    assert tree.read(log) == b"a log"
    assert tree.read_part(log, 2, 3) == b"log"
    assert tree.read(f"{log}.1") is None
    assert list(tree.walk(tree.path("logs"))) == [Found(log, 5)]
    assert list(tree.walk(tree.path("nothing"))) == []
    assert not tree.move(temporary, tree.path("topics/taken"))
    assert tree.move(temporary, tree.path("topics/a/b/x"))
    assert not tree.move(temporary, tree.path("topics/a/b/y"))
    assert tree.exists(tree.path("topics/a/b/x"))
    assert tree.remove(tree.path("topics/taken"))
    assert not tree.remove(tree.path("topics/taken"))
    tree.close()
    assert sorted(hdfs_files.all_files(settings.url)) == ["logs/t/0/log", "topics/a/b/x"]


def test_publisher_without_a_driver_says_where_it_works(settings: HdfsSettings) -> None:
    other = replace(settings, conf_dir=os.getcwd())
    assert refusal(other, None).code == "hdfs.jvm_elsewhere"
    assert isinstance(HdfsStore(settings).publisher(probe_prefix="", overwrite=False), HdfsPublisher)
