"""The public API: what it exports, what it costs, that a plugin written against it type-checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import airflow_connect.api as api
from airflow_connect.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Connector,
    Delivery,
    SinkConnector,
    SourceConnector,
    StagingSinkConnector,
)
from airflow_connect.errors import is_retriable

ROOT = Path(__file__).parents[3]
LAZY = """
import sys
import airflow_connect.api
before = set(sys.modules)
from airflow_connect.api import SinkTask
print(*sorted(name for name in before if name.startswith("airflow_connect")))
"""


def test_every_public_name_is_there_and_every_other_is_an_error():
    assert set(api.__all__) == set(api._PLACES)
    assert [name for name in api.__all__ if getattr(api, name) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'NoSuchThing'"):
        api.NoSuchThing  # noqa: B018
    assert set(api.__all__) <= set(dir(api))


def test_public_name_is_loaded_on_first_use_only():
    ran = subprocess.run([sys.executable, "-S", "-c", LAZY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["airflow_connect", "airflow_connect.api"]


def test_every_public_name_is_described_on_the_page():
    page = (ROOT / "docs" / "plugin-api.md").read_text()
    assert [name for name in api.__all__ if f"`{name}`" not in page] == []


def test_connector_by_itself_has_sensible_defaults():
    class Mine(SinkConnector):
        config_def = ConfigDef().define(ConfigKey("k", ConfigType.INT))

    mine = Mine()
    mine.start({"k": "1"})

    assert mine.task_configs(2) == [{"k": "1"}, {"k": "1"}]
    assert [value.errors for value in Mine.validate({"k": "x"})] != [[]]
    assert (Mine.delivery, mine.alter_offsets({}, {}, {})) == (Delivery.AT_LEAST_ONCE, False)
    assert issubclass(Mine, Connector)


@pytest.mark.parametrize(("method", "arguments"), [("publish", [[]]), ("abort", [[]]), ("list_staged", [])])
def test_staging_connector_without_publisher_must_publish_abort_and_list(method, arguments):
    class Half(StagingSinkConnector):
        pass

    with pytest.raises(NotImplementedError, match=f"without `publisher` .*`{method}`"):
        getattr(Half(), method)(*arguments)


def test_source_says_nothing_about_exactly_once_unless_it_does():
    source = SourceConnector()
    assert source.exactly_once_support({}) is None
    assert not source.can_define_transaction_boundaries({})
    assert not source.alter_offsets({}, {})


def test_retriable_error_is_retriable_and_so_is_a_server_that_is_away():
    assert is_retriable(api.RetriableError("Later."))
    assert isinstance(api.UnavailableError("Away."), api.RetriableError)


def test_examples_type_check_strictly():
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent"]
    ran = subprocess.run(
        [*command, "examples/plugins/airflow_connect_examples"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_examples_are_shorter_than_forty_lines():
    files = list((ROOT / "examples" / "plugins" / "airflow_connect_examples").glob("*.py"))
    lengths: dict[str, Any] = {path.name: len(path.read_text().splitlines()) for path in files}
    assert len(lengths) == 4
    assert {name: lines for name, lines in lengths.items() if lines >= 40} == {}
