"""NameNodes that take connections and never answer, or whose packets are dropped: a run hears of it soon."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.connectors.files.hdfs.file_trees import open_tree
from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.engine.hadoop_jvm import start_hadoop_jvm
from airflow_connect.stores.hdfs import settings as hdfs_settings
from airflow_connect.stores.hdfs.file_system import HdfsFileSystem
from airflow_connect.stores.hdfs.publish import HdfsPublisher
from airflow_connect.stores.hdfs.request_timeouts import FIRST_ANSWER_S
from airflow_connect.stores.hdfs.settings import FIRST_RETRY_S, JVM, NATIVE, HdfsSettings
from airflow_connect.stores.hdfs.staging import HdfsStager
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.store import FileIdentity
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files

pytestmark = pytest.mark.integration

SOON_S = 3.0
"""What these tests give a first answer; every other request keeps 600 s, so that a test which waits for one fails."""


@pytest.fixture
def silent() -> Iterator[str]:
    """Connections are made by the kernel, and nobody reads what comes through them."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def dropping() -> Iterator[str]:
    """The queue of connections is full, so the kernel drops every further packet that asks for one."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(address)
        yield f"127.0.0.1:{address[1]}"
        for client in waiting:
            client.close()


def settings_for(url: str, publisher: str = NATIVE, conf_dir: str = "") -> HdfsSettings:
    return HdfsSettings(url, conf_dir, publisher=publisher, answer_s=600, first_answer_s=SOON_S, retry_s=600)


def service(folder: Path, *addresses: str) -> str:
    """A folder of Hadoop's configuration with a name service `lake` of these NameNodes."""
    nodes = {f"nn{number}": address for number, address in enumerate(addresses)}
    properties = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": ",".join(nodes),
        "dfs.client.failover.proxy.provider.lake": "org.apache.hadoop.hdfs.server.namenode.ha."
        "ConfiguredFailoverProxyProvider",
        **{f"dfs.namenode.rpc-address.lake.{node}": address for node, address in nodes.items()},
    }
    lines = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items())
    (folder / "hdfs-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    return str(folder)


def assert_names_the_address(error: UnavailableError) -> None:
    assert (error.code, error.config_path, error.retriable) == ("hdfs.no_answer", "store.url", True)
    assert "not answered within 3 s" in error.message
    assert "firewall" in error.suggestion


def test_first_contact_of_a_run_ends_below_30_s() -> None:
    """Twice: one look which NameNodes answer, then refusals that are repeated, the last of which becomes silence."""
    assert HdfsSettings("hdfs://h").first_answer_s == FIRST_ANSWER_S
    assert FIRST_ANSWER_S + FIRST_RETRY_S + FIRST_ANSWER_S < 30
    assert hdfs_settings.ANSWER_S == 120


@pytest.mark.parametrize("publisher", [NATIVE, JVM])
@pytest.mark.parametrize("trouble", ["silent", "dropping"])
def test_silence_at_the_address_is_told_by_the_first_contact(
    publisher: str, trouble: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(trouble)
    store = HdfsStore(settings_for(f"hdfs://{address}", publisher), start_hadoop_jvm)
    with pytest.raises(UnavailableError) as caught:
        open_tree(store)
    assert_names_the_address(caught.value)

    first_of_a_later_run = store.publisher(probe_prefix="t/", overwrite=False)
    with pytest.raises(UnavailableError) as caught:
        first_of_a_later_run.preflight()
    first_of_a_later_run.close()
    assert_names_the_address(caught.value)


def test_after_a_silent_first_contact_nothing_else_is_waited_for(silent: str) -> None:
    """Tidying up after a failed preflight must not cost the general patience."""
    publisher = HdfsPublisher(settings_for(f"hdfs://{silent}"), probe_prefix="t/")
    with pytest.raises(UnavailableError):
        publisher.preflight()
    with pytest.raises(UnavailableError, match="an earlier request"):
        list(publisher.list_staged(["t/"]))
    publisher.close()


@pytest.mark.parametrize("publisher", [NATIVE, JVM])
@pytest.mark.parametrize("trouble", ["silent", "dropping"])
def test_silent_name_node_of_a_service_does_not_hide_the_active_one(
    publisher: str, trouble: str, request: pytest.FixtureRequest, hdfs: HdfsCluster, unique_name: str, tmp_path: Path
) -> None:
    """Driver and executors both go to the second of the list at once."""
    conf_dir = service(tmp_path, request.getfixturevalue(trouble), hdfs.url.removeprefix("hdfs://"))
    settings = settings_for(f"hdfs://lake/{unique_name}", publisher, conf_dir)
    driver = HdfsStore(settings, start_hadoop_jvm).publisher(probe_prefix="t/", overwrite=False)
    driver.preflight()
    stager = HdfsStager(settings)
    file = stager.open(FileIdentity("t/f", "t", 0, 0, root="t/"))
    file.write(b"abc")
    staged = file.close(1, 1).result(60)
    stager.close()
    driver.publish([staged], lambda _: None)
    driver.close()

    assert hdfs_files.visible_files(f"{hdfs.url}/{unique_name}") == {"t/f": b"abc"}


def test_service_of_which_all_are_silent_is_told_by_the_first_contact(
    silent: str, dropping: str, tmp_path: Path
) -> None:
    settings = settings_for("hdfs://lake", conf_dir=service(tmp_path, silent, dropping))
    with pytest.raises(UnavailableError) as caught:
        open_tree(HdfsStore(settings))
    assert_names_the_address(caught.value)


def test_files_are_looked_for_at_a_silent_address_with_the_same_patience(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_system = HdfsFileSystem(f"hdfs://{silent}")
    monkeypatch.setattr(file_system, "_settings", settings_for(f"hdfs://{silent}"))
    for look in (lambda: file_system.find(f"hdfs://{silent}/f"), lambda: list(file_system.walk("/d", recursive=True))):
        with pytest.raises(UnavailableError) as caught:
            look()
        assert caught.value.code == "file.unreadable"
    file_system.close()


def test_files_are_found_behind_a_silent_name_node(
    silent: str, hdfs: HdfsCluster, unique_name: str, tmp_path: Path
) -> None:
    hdfs_files.put(f"{hdfs.url}/{unique_name}/f", b"line\n")
    file_system = HdfsFileSystem("hdfs://lake", service(tmp_path, silent, hdfs.url.removeprefix("hdfs://")))
    found = file_system.find(f"hdfs://lake/{unique_name}/f")
    file_system.close()
    assert found is not None
    assert found.size == 5
