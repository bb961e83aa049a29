"""The keys of a plugin: asking for them imports no arbitrary module."""

from __future__ import annotations

import sys

import pytest

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.control.herder.plugins import keys_of
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.task_configs import kind_of, version_of


class OwnTransformation:
    """A class of this module, as a connector may use it."""

    config_def = ConfigDef().define(ConfigKey("color", Type.STRING, "red", "A color."))


NAME = "module_of_a_test_that_ends_the_process"


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("name", [f"{NAME}:Sink", f"{NAME}.Sink", "this:d", "no such name"])
def test_a_module_that_no_connector_uses_is_not_imported(name: str) -> None:
    with pytest.raises(RefusedError, match="Unknown plugin"):
        keys_of(name, lambda: {"S3Sink", "other:Thing"})
    assert not {NAME, "this"} & sys.modules.keys()


def test_a_class_that_a_connector_uses_is_looked_at() -> None:
    name = "airflow_connect.connectors.files.local.connector:LocalSinkConnector"
    assert keys_of(name, lambda: {name}) == keys_of(name)
    own = f"{__name__}:OwnTransformation"
    assert [key["name"] for key in keys_of(own, lambda: {own})] == ["color"]
    with pytest.raises(RefusedError, match="Unknown plugin"):
        keys_of(own, lambda: {"color"})


def test_a_registered_class_that_ends_the_process_leaves_the_connector_readable() -> None:
    assert kind_of({"connector.class": f"{NAME}:Sink"}) == "unknown"
    assert version_of({"connector.class": f"{NAME}:Sink"}) is None
    with pytest.raises(RefusedError, match="Unknown plugin"):
        keys_of(f"{NAME}:Sink", lambda: {f"{NAME}:Sink"})
