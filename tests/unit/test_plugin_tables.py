"""The tables of plugins: each names all plugins of its package and nothing else. Reading them loads no plugin."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from airflow_connect import plugin_tables
from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.config_provider import ConfigProvider
from airflow_connect.api.connector import Connector
from airflow_connect.api.converter import Converter, HeaderConverter
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.connectors.files.s3.credentials import CredentialsProvider
from airflow_connect.connectors.java.connector import JavaConnector
from airflow_connect.connectors.java.sink import JavaSinkConnector
from airflow_connect.connectors.java.source import JavaSourceConnector
from airflow_connect.formats.format import Format
from airflow_connect.layout.file_system_names import CheckedNames
from airflow_connect.layout.late_records import LatePartitioner
from airflow_connect.layout.partitioners import (
    Partitioner,
    SchemaAffixPartitioner,
    TombstonePartitioner,
    WrappingPartitioner,
)
from airflow_connect.layout.timestamp_extractors import TimestampExtractor
from airflow_connect.stores.local.store import LocalStore
from airflow_connect.stores.store import Store

CONTRACTS: dict[PluginKind, type] = {
    PluginKind.CONNECTOR: Connector,
    PluginKind.CONVERTER: Converter,
    PluginKind.HEADER_CONVERTER: HeaderConverter,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
    PluginKind.CONFIG_PROVIDER: ConfigProvider,
    PluginKind.FORMAT: Format,
    PluginKind.PARTITIONER: Partitioner,
    PluginKind.TIMESTAMP_EXTRACTOR: TimestampExtractor,
    PluginKind.STORAGE: Store,
    PluginKind.CREDENTIALS_PROVIDER: CredentialsProvider,
}
# Sinks put these around the configured partitioner. Only the S3 and the HDFS sink have the key `storage.class`. Classes
# for Java connectors are made from these when they are found.
NOT_NAMED_BY_A_CONFIGURATION = {
    CheckedNames,
    LatePartitioner,
    SchemaAffixPartitioner,
    TombstonePartitioner,
    WrappingPartitioner,
    LocalStore,
    JavaConnector,
    JavaSinkConnector,
    JavaSourceConnector,
}
PACKAGES = sorted(plugin_tables._PACKAGES, key=lambda table: table.__name__)
TABLES = [(table, kind) for table in PACKAGES for kind in table.TABLES]


def classes_of(package: str) -> Iterator[type]:
    """Public classes that modules below a package define, and their nested classes."""
    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        module = import_module(found.name)
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == module.__name__ and not value.__name__.startswith("_"):
                yield value
                yield from (nested for nested in vars(value).values() if inspect.isclass(nested))


def fulfils(found: type, contract: type) -> bool:
    """Whether objects of a class can be used as plugins of a kind."""
    if found is contract or inspect.isabstract(found) or getattr(found, "_is_protocol", False):
        return False
    if not getattr(contract, "_is_protocol", False):
        return issubclass(found, contract)
    methods = [name for name, value in vars(contract).items() if inspect.isfunction(value) and not name.startswith("_")]
    return all(hasattr(found, name) for name in methods)


@pytest.mark.parametrize(("table", "kind"), TABLES, ids=lambda part: getattr(part, "name", None) or part.__package__)
def test_table_names_every_plugin_of_its_package_and_no_other_class(table: ModuleType, kind: PluginKind) -> None:
    package = str(table.__package__)
    named = {load_class(kind, name) for name in table.TABLES[kind]}
    found = {found for found in classes_of(package) if fulfils(found, CONTRACTS[kind])}
    # Daily and hourly partitioners are functions that configure a `TimeBasedPartitioner`.
    assert set(filter(inspect.isclass, named)) == found - NOT_NAMED_BY_A_CONFIGURATION
    assert [found for found in named if not found.__module__.startswith(f"{package}.")] == []


def test_every_package_with_a_table_is_joined() -> None:
    folder = Path(str(plugin_tables.__file__)).parent
    files = set(folder.glob("*/plugins.py"))
    assert {Path(str(table.__file__)) for table in PACKAGES} == files
    assert set(plugin_tables.TABLES) == set(PluginKind)
    assert all(plugin_tables.TABLES.values())


def test_no_name_is_in_two_tables() -> None:
    names = [(kind, name) for table, kind in TABLES for name in table.TABLES[kind]]
    assert len(names) == len(set(names))


def test_look_up_loads_no_plugin() -> None:
    code = (
        "import sys; from airflow_connect.api.config.plugins import PluginKind, aliases, resolve;"
        " print(resolve(PluginKind.CONNECTOR, 'S3Sink').path, *map(len, map(aliases, PluginKind)));"
        " print(*sorted(name for name in sys.modules if name.startswith('airflow_connect.')))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    first, loaded = ran.stdout.splitlines()
    assert first.startswith("airflow_connect.connectors.files.s3.connector:S3SinkConnector")
    below = re.compile(r"airflow_connect\.(api$|api\.config\b|errors|java)")
    tables = {"airflow_connect.plugin_tables", *(table.__name__ for table in PACKAGES)}
    packages = {str(table.__package__) for table in PACKAGES}
    assert {name for name in loaded.split() if not below.match(name)} == tables | packages
