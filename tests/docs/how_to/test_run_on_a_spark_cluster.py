"""docs/how-to/run-on-a-spark-cluster.md: Spark accepts its settings, and its tables say what the code does."""

from __future__ import annotations

import re

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.runtime import machines
from airflow_connect.runtime.engine.spark_settings import refuse_unusable
from airflow_connect.runtime.machines import GROUPS, DriverMachine, Taken, has_other_machines, name_machines
from tests.docs.pages import ROOT, blocks

PAGE = "docs/how-to/run-on-a-spark-cluster.md"
SETTINGS = [block.text for block in blocks("properties fragment") if block.page == PAGE]


@pytest.mark.parametrize("text", SETTINGS, ids=lambda text: text.split("\n")[0])
def test_settings_of_the_page_are_accepted(text: str) -> None:
    settings = parse_properties(text)
    refuse_unusable(settings)
    assert all(key.startswith("spark.") for key in settings)
    assert has_other_machines(settings) or "spark.master" not in settings


def test_page_has_settings_for_each_cluster() -> None:
    masters = {parse_properties(text).get("spark.master", "").partition(":")[0] for text in SETTINGS}
    assert masters >= {"spark", "yarn", "k8s"}


def test_table_of_logins_has_every_variable_that_is_sent() -> None:
    table = (ROOT / PAGE).read_text().partition("| group | variables |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([A-Z0-9_]+)`", table)
    assert sorted(listed) == sorted(name for group in GROUPS for name in group.sent)


def test_error_of_the_page_is_what_a_task_says(monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = (block.text for block in blocks("text") if block.page == PAGE)
    monkeypatch.setattr(machines.socket, "gethostname", lambda: "node-7")
    monkeypatch.setattr(machines, "_exists", lambda path: False)
    error = AccessError("No AWS credentials were found.", code="s3.no_credentials")
    name_machines(error, DriverMachine("gateway", paths=("~/.aws/credentials", "~/.pgpass")), Taken())

    assert f"✗ {error.code}\n  {error.message}\n  → ... {error.suggestion}\n" == shown
