"""Starting hosts: what is missing or too old is told; nothing is left of a start that fails, or of a dead parent."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from airflow_connect.errors import AccessError, ConfigError, JavaBlockedError, JavaVersionError, JvmGoneError
from airflow_connect.jvm import host as host_module
from airflow_connect.jvm.cache import cache_dir
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.host_jars import LOCK, runtime_jars
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from tests.integration.jvm.hosting import is_running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_host_tells_its_versions_and_hides_its_socket(temporary_folder):
    with PluginHost.start([], is_driver=True, heap_mb=128) as host:
        assert host.hello["connect"] == "4.3.1"
        (folder,) = temporary_folder.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []
        command = Path(f"/proc/{host.pid}/cmdline").read_text()
        assert "-Xmx128m" in command
        memory = host.call("memory").result
        assert 0 < memory["used"] < memory["max"] <= 128 << 20
    assert list(temporary_folder.iterdir()) == []
    assert not is_running(host.pid)


def test_temporary_files_of_plugins_end_with_their_host(temporary_folder):
    """A host that is halted runs no hook by which Java deletes them: native libraries stay behind, for example."""
    with PluginHost.start([], is_driver=True, heap_mb=128) as host:
        (folder,) = temporary_folder.iterdir()
        assert f"-Djava.io.tmpdir={folder}" in Path(f"/proc/{host.pid}/cmdline").read_text()
        (folder / "unpacked" / "deep").mkdir(parents=True)
        (folder / "unpacked" / "deep" / "library.so").write_text("x")
        (folder / "outside").symlink_to(temporary_folder.parent)
        host.call("close", orderly=False, call_ms=1000)
        wait_until(lambda: not folder.exists(), "the host to remove its folder")
    assert temporary_folder.parent.exists(), "links are not followed"


def test_option_that_java_does_not_know_is_told(temporary_folder):
    with pytest.raises(JvmGoneError, match="NoSuchFlag") as failed:
        PluginHost.start([], options=["-XX:+NoSuchFlag"])
    assert "airflow.java.options" in failed.value.suggestion
    assert list(temporary_folder.iterdir()) == []


def test_jvm_that_does_not_start_in_time_is_ended_and_told(temporary_folder, monkeypatch):
    monkeypatch.setattr(host_module, "START_TIMEOUT_S", 0.01)
    with pytest.raises(JavaBlockedError, match=r"did not start within 0\.01 s, and was ended") as failed:
        PluginHost.start([])
    assert (failed.value.code, failed.value.retriable) == ("java.blocked", True)
    assert list(temporary_folder.iterdir()) == []


def test_java_that_is_missing_is_told(monkeypatch):
    def no_java():
        raise AccessError("No Java 17 or newer was found.", code="java.not_found", suggestion="Install one.")

    monkeypatch.setattr(host_module, "find_java", no_java)
    with pytest.raises(JavaVersionError, match="No Java 17 or newer") as failed:
        PluginHost.start([])
    assert (failed.value.code, failed.value.suggestion) == ("java.version", "Install one.")


def test_folder_of_a_kafka_installation_is_used(tmp_path):
    for jar in fetch_jars(LOCK):
        (tmp_path / jar.name).symlink_to(jar)
    with PluginHost.start([], is_driver=True, heap_mb=128, connect_home=tmp_path) as host:
        assert host.hello["connect"] == "4.3.1"
    with pytest.raises(JavaVersionError, match="has no jar connect-runtime") as failed:
        PluginHost.start([], connect_home=tmp_path / "missing")
    assert failed.value.config_path == "airflow.java.connect.home"


def test_runtime_that_is_too_old_is_told(tmp_path):
    """Kafka 4.1 brought the class that is taken away here."""
    for jar in fetch_jars(LOCK):
        if "kafka-clients" not in jar.name:
            (tmp_path / jar.name).symlink_to(jar)
            continue
        with zipfile.ZipFile(jar) as new, zipfile.ZipFile(tmp_path / jar.name, "w") as old:
            for entry in new.infolist():
                if "PluginMetrics" not in entry.filename:
                    old.writestr(entry, new.read(entry))
    with pytest.raises(JavaVersionError, match=r"version 4\.3\.1; plugins need 4\.1 or newer\. Plugins") as failed:
        PluginHost.start([], is_driver=True, heap_mb=128, connect_home=tmp_path)
    assert failed.value.code == "java.version"


def test_runtime_has_no_service_files_of_jackson_modules():
    (blackbird,) = [jar for jar in runtime_jars() if "blackbird" in jar.name]
    assert b"META-INF/services" not in blackbird.read_bytes()


def test_comma_in_a_plugin_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="has a comma") as failed:
        PluginHost.start([tmp_path / "a,b"], is_driver=True)
    assert failed.value.config_path == "plugin.path"


def test_long_temporary_folder_still_has_a_socket(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 90)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with PluginHost.start([], is_driver=True, heap_mb=128) as host:
        assert host.call("memory").result["threads"] > 0


def test_hosts_keep_an_archive_of_class_data(tmp_path, monkeypatch):
    """The second host of a kind writes it, all later ones start with it, whatever their heap is."""
    (tmp_path / "jars").symlink_to(cache_dir() / "jars")
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path))
    has_archive = []
    for heap_mb in (100, 110, 120):
        with PluginHost.start([], is_driver=True, heap_mb=heap_mb) as host:
            command = Path(f"/proc/{host.pid}/cmdline").read_text()
            has_archive.append("-XX:SharedArchiveFile" in command and "-XX:ArchiveClassesAtExit" not in command)
        assert host._exit_code == 0
    assert has_archive == [False, False, True]


def test_host_works_in_a_process_that_ignores_the_end_of_its_children():
    program = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "from airflow_connect.jvm.host import PluginHost; host = PluginHost.start([], is_driver=True, heap_mb=128);"
        "print(host.call('memory').result['threads'] > 0, host.close())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("True []\n", "")


@pytest.mark.parametrize(
    "end",
    ["os._exit(0)", "os.kill(os.getpid(), 9)", "host._wire.send({'op': 'close'}, [], None); os.kill(os.getpid(), 9)"],
    ids=["ends", "is killed", "is killed while it closes the host"],
)
def test_jvm_ends_with_its_parent_and_leaves_no_folder(tmp_path, end):
    program = (
        "import os; from airflow_connect.jvm.host import PluginHost;"
        f"host = PluginHost.start([], is_driver=True, heap_mb=128); print(host.pid, flush=True); input(); {end}"
    )
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as parent:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        assert len(list(tmp_path.iterdir())) == 1
        parent.communicate("\n")
    wait_until(lambda: not is_running(pid), "the JVM ends within seconds")
    assert list(tmp_path.iterdir()) == []
