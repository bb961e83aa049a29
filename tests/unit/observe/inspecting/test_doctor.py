"""What `doctor` finds about software and clocks."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from airflow_connect.observe.inspecting import doctor
from airflow_connect.observe.inspecting.doctor_of_stores import compared_clocks
from airflow_connect.runtime.engine import pyspark_versions
from airflow_connect.runtime.engine.session import open_session
from airflow_connect.runtime.machines import GROUPS
from tests.support.java_classes import SINK, class_file, jar
from tests.support.java_plugins import forget_java_plugins

NOON = "Fri, 20 Nov 2026 12:00:00 GMT"
NOON_S = 1795176000.0


def spark_checks(monkeypatch: pytest.MonkeyPatch, *, runs_here: bool = True, **installed: str) -> list[doctor.Check]:
    """The checks of an installation with these packages, `_` in a name standing for `-`."""
    packages = {name.replace("_", "-"): number for name, number in installed.items()}

    def version(name: str) -> str:
        if name not in packages:
            raise PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(pyspark_versions, "version", version)
    return [check for check in doctor.check_software(runs_here=runs_here) if check.did in ("Spark", "Java")]


def test_two_kinds_of_pyspark_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower version is suggested: the higher one may not exist of both."""
    for classic, client in (("4.9.0", "4.10.0"), ("4.10.0", "4.9.0")):
        (check,) = spark_checks(monkeypatch, pyspark=classic, pyspark_client=client)
        assert not check.is_ok
        assert "every Python worker fails" in check.found
        assert check.to_do.endswith('pip install "pyspark==4.9.0" "pyspark-client==4.9.0"')


def test_a_run_with_two_kinds_of_pyspark_is_refused_before_a_jvm_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark_versions, "version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.__getitem__)
    with pytest.raises(pyspark_versions.PysparkVersionsError, match="every Python worker fails") as caught:
        open_session({})
    assert not caught.value.retriable
    assert "pyspark-client==4.2.0" in caught.value.suggestion


def test_a_machine_without_spark_is_told_and_one_with_it_needs_java(monkeypatch: pytest.MonkeyPatch) -> None:
    for runs_here in (True, False):
        (check,) = spark_checks(monkeypatch, runs_here=runs_here)
        assert (check.did, check.is_ok) == ("Spark", not runs_here)
    (check,) = spark_checks(monkeypatch, pyspark="4.2.0", pyspark_client="4.2.0")
    assert (check.did, check.is_ok) == ("Java", True)


def test_java_plugins_are_counted_and_what_cannot_be_used_is_a_failed_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_java_plugins(monkeypatch)
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    jar(tmp_path / "plugins" / "a.jar", [class_file("acme/Sink", SINK)])
    (tmp_path / "plugins" / "b.jar").write_bytes(b"")
    worker = {"bootstrap.servers": "localhost:1", "plugin.path": f"{tmp_path}/plugins,{tmp_path}/gone"}
    monkeypatch.setattr(doctor, "check_worker", lambda worker, references: [])
    checks = [check for check in doctor.examine(worker, [], deep=False) if check.did == doctor.JAVA_PLUGINS]
    assert [(check.found, check.is_ok) for check in checks] == [
        ("plugin.path has 2 folders and jars with 1 class.", True),
        (
            f"plugin.path names {tmp_path}/gone, which does not exist on this machine; nothing is read from there.",
            False,
        ),
        (f"{tmp_path}/plugins/b.jar cannot be read: File is not a zip file.", False),
    ]
    assert not [c for c in doctor.examine({"bootstrap.servers": "b:1"}, [], deep=False) if c.did == doctor.JAVA_PLUGINS]


@pytest.mark.parametrize(
    ("date", "ahead_s", "is_ok", "says"),
    [
        (NOON, 59.0, True, "agree"),
        (NOON, -61.0, False, "differ by 61 s"),
        ("", 0.0, True, "does not tell"),
        ("yesterday", 0.0, True, "does not tell"),
    ],
)
def test_clocks_are_compared(date: str, ahead_s: float, is_ok: bool, says: str) -> None:
    found, to_do, is_in_order = compared_clocks(date, NOON_S + ahead_s)
    assert (is_in_order, says in found, bool(to_do)) == (is_ok, True, not is_ok)


def test_executors_elsewhere_are_told_with_the_names_of_what_they_get(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (name for group in GROUPS for name in group.sent):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    worker = {"spark.master": "yarn", "spark.pyspark.python": "./environment/bin/python"}
    (without,) = doctor.check_executors(worker)
    monkeypatch.setenv("PGPASSWORD", "hunter2-of-the-doctor")
    (check,) = doctor.check_executors(worker)

    assert list(doctor.check_executors({"spark.master": "local[2]"})) == []
    assert without.found.endswith("Executors without a login of their own get no login of this environment.")
    assert "./environment/bin/python" in check.found
    assert check.found.endswith("Executors without a login of their own get PGPASSWORD of this environment.")
    assert "hunter2" not in f"{check}"
