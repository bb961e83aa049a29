"""What the JVM of Hadoop's client needs, and how its absence is said; no JVM is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.runtime.engine import hadoop_jvm


def test_missing_py4j_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", None)
    with pytest.raises(AccessError, match="needs the Python package py4j") as caught:
        hadoop_jvm.start_hadoop_jvm([])

    assert (caught.value.code, caught.value.config_path) == ("hdfs.jvm_missing", "hdfs.publisher")
    assert "airflow-connect[spark]" in caught.value.suggestion


def test_spark_without_hadoop_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(AccessError, match=f"the jars of Hadoop's client in {tmp_path}/jars"):
        hadoop_jvm.start_hadoop_jvm([])


def test_java_is_told_where_kerberos_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", "/etc/one.conf:/etc/two.conf")
    assert hadoop_jvm._kerberos() == ["-Djava.security.krb5.conf=/etc/one.conf"]
    monkeypatch.delenv("KRB5_CONFIG")
    assert hadoop_jvm._kerberos() == []
