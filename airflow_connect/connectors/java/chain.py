"""Java converters, transformations and predicates as classes here: they have keys, and run in plugin hosts only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from airflow_connect.api.record import ConnectRecord
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin


class OnlyInJava:
    """The base of classes that only Java connectors can use; there are no objects of them."""

    plugin: ClassVar[JavaPlugin]

    def __init__(self, *_arguments: object) -> None:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"{self.plugin.class_name} is a Java class, which only Java connectors can use.",
            code="java.mixed_chain",
            suggestion="With this connector, use a class of this package or a Python class.",
        )


class JavaTransformation(OnlyInJava, Transformation):
    """A transformation of a plugin path."""

    def apply(self, record: Any) -> Any:
        """Never called: there is no object."""
        raise NotImplementedError(self.plugin.class_name)


class JavaPredicate(OnlyInJava, Predicate):
    """A predicate of a plugin path."""

    def test(self, record: ConnectRecord) -> bool:
        """Never called: there is no object."""
        raise NotImplementedError(self.plugin.class_name)


class JavaConverter(OnlyInJava):
    """A converter, or something else that only has a name here."""

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Never called: there is no object."""
        raise NotImplementedError(self.plugin.class_name)
