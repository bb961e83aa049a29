"""Java classes among the names of plugins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.errors import ConfigError

JDBC = "io.confluent.connect.jdbc.JdbcSinkConnector"
MONGO = "com.mongodb.kafka.connect.MongoSinkConnector"


def made(name: str) -> tuple[str, str]:
    """Stands in for the function that makes a class for a Java class."""
    return ("made", name)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "_added", {})
    monkeypatch.setattr(plugins, "_searched", {})
    return None


def add(kind: PluginKind, *names: str) -> None:
    plugins.add(kind, {name: f"{__name__}:made[{name}]" for name in names}, place="/opt/plugins")


@pytest.mark.parametrize("name", [MONGO, "MongoSinkConnector", "MongoSink"])
def test_a_java_class_is_found_by_its_name_and_its_aliases_and_made_when_it_is_loaded(name: str) -> None:
    add(PluginKind.CONNECTOR, MONGO)
    found = plugins.resolve(PluginKind.CONNECTOR, name)
    assert (found.name, found.is_java, plugins.load(found)) == (MONGO, True, ("made", MONGO))
    assert plugins.installed(PluginKind.CONNECTOR, name) == found


@pytest.mark.parametrize(
    ("kind", "java", "aliases"),
    [
        (PluginKind.CONNECTOR, "a.FooConnectorV2", {"FooConnectorV2", "Foo"}),
        (PluginKind.CONNECTOR, "a.Connector", {"Connector"}),
        (PluginKind.TRANSFORMATION, "a.Mask$Value", {"Value"}),
        (PluginKind.TRANSFORMATION, "a.MaskTransformation", {"MaskTransformation", "Mask"}),
        (PluginKind.HEADER_CONVERTER, "a.JsonHeaderConverter", {"JsonHeaderConverter", "Json"}),
    ],
)
def test_aliases_are_those_of_connect(kind: PluginKind, java: str, aliases: set[str]) -> None:
    assert plugins.java_aliases(kind, java) == aliases


def test_an_alias_of_two_classes_is_not_resolved_and_the_message_names_both() -> None:
    add(PluginKind.CONNECTOR, "a.Foo", "b.FooConnector")
    with pytest.raises(ConfigError, match="There is no connector called 'Foo'") as caught:
        plugins.resolve(PluginKind.CONNECTOR, "Foo")
    assert "fits several Java classes, so use a full name: a.Foo, b.FooConnector." in caught.value.suggestion
    assert plugins.resolve(PluginKind.CONNECTOR, "FooConnector").name == "b.FooConnector"


def test_a_python_class_of_the_same_name_wins_unless_the_connector_prefers_java() -> None:
    add(PluginKind.CONNECTOR, JDBC, "com.acme.S3SinkConnector")
    config = {"connector.class": JDBC}
    assert not plugins.resolve_connector(config).is_java
    assert plugins.note_on_choice(config) == (
        (
            f"{JDBC} is the connector of this package. plugin.path has a Java class of this name, {JDBC}:"
            " airflow.java.prefer=true takes that one."
        ),
    )
    java = {**config, "airflow.java.prefer": "TRUE"}
    assert plugins.resolve_connector(java).is_java
    assert plugins.note_on_choice(java) == (
        f"{JDBC} is the Java class {JDBC} of plugin.path, because airflow.java.prefer is true.",
    )
    alias = {"connector.class": "S3Sink", "airflow.java.prefer": "true"}
    assert plugins.resolve_connector(alias).name == "com.acme.S3SinkConnector"
    assert plugins.resolve_connector({**alias, "airflow.java.prefer": "false"}).name.startswith("io.confluent.")


def test_a_class_that_only_java_has_needs_no_note() -> None:
    add(PluginKind.CONNECTOR, MONGO)
    for prefers in ("true", "false"):
        assert plugins.note_on_choice({"connector.class": MONGO, "airflow.java.prefer": prefers}) == ()
    assert plugins.note_on_choice({"connector.class": "S3Sink", "airflow.java.prefer": "true"}) == ()


def test_an_unknown_class_is_told_where_java_plugins_are_looked_for() -> None:
    with pytest.raises(ConfigError) as caught:
        plugins.resolve(PluginKind.CONNECTOR, "com.acme.Unknown")
    assert "For a Java plugin, put its jars into a folder of the worker's plugin.path." in caught.value.suggestion
    add(PluginKind.CONNECTOR, "com.acme.UnknownSource")
    with pytest.raises(ConfigError) as caught:
        plugins.resolve(PluginKind.CONNECTOR, "com.acme.UnknownSourc")
    assert "Did you mean com.acme.UnknownSource?" in caught.value.suggestion
    assert "were looked for in plugin.path, /opt/plugins, on this machine." in caught.value.suggestion
    with pytest.raises(ConfigError) as caught:
        plugins.resolve(PluginKind.FORMAT, "com.acme.Format")
    assert "Java" not in caught.value.suggestion


def test_additions_are_counted_so_that_what_was_remembered_can_be_dropped() -> None:
    before = plugins.additions()
    add(PluginKind.CONNECTOR, MONGO)
    assert plugins.additions() == before + 1
    names = plugins.java_names(PluginKind.CONNECTOR)
    assert MONGO in names and names == sorted(names) and len(names) == len(plugins.built_in(PluginKind.CONNECTOR)) + 1
