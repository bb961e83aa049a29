"""Camel's file source as bounded runs, in the soak. It does not look at offsets: it moves stored files away."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.conftest import MakeTopic
from tests.support.copies.camel import contents, file_source, put_files, values_of
from tests.support.copies.java_plugin import JavaConnector

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(60)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "in"


@pytest.fixture
def source(kafka: KafkaBroker, camel: Path, make_topic: MakeTopic, folder: Path, unique_name: str) -> JavaConnector:
    return file_source(kafka.bootstrap, camel, folder, make_topic(), f"camel-{unique_name}")


def test_each_file_is_read_once(source: JavaConnector, folder: Path) -> None:
    put_files(folder, 0, 5)
    assert source.run().records == 5
    put_files(folder, 5, 6)
    second = source.run()
    third = source.run()
    assert (second.records, third.status) == (1, "empty")
    assert sorted(values_of(source)) == contents(0, 6)


@pytest.mark.parametrize(("step", "times"), [(crash_points.SOURCE_TASK_SENT, 1), (crash_points.SOURCE_TASK_STORED, 2)])
def test_killed_run_loses_no_file_and_may_read_one_again(
    source: JavaConnector, folder: Path, step: str, times: int
) -> None:
    """Camel moves a file away when it is told that it is stored."""
    put_files(folder, 0, 5)
    assert source.start(step).wait() is None
    source.run()
    assert sorted(values_of(source)) == sorted(contents(0, 5) * times)


def test_failed_run_leaves_every_file(source: JavaConnector, folder: Path) -> None:
    put_files(folder, 0, 5)
    failing = {
        "transforms": "text,number",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
    }
    assert source.try_run(**failing).status == "failed"
    source.run()
    assert sorted(values_of(source)) == contents(0, 5)
