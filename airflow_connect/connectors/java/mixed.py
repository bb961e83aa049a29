"""Which side runs the chain of a Java connector: Java, unless one of its classes is a Python class here.

Then the run does, as with any connector, and its Java classes run as stages of that chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config.plugins import resolve
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND
from airflow_connect.config.resolved.own_chain import CONVERTERS, chain_classes
from airflow_connect.errors import ConfigError

_APACHE = "org.apache.kafka.connect."
"""Classes of Connect itself, which every plugin host has."""


def python_classes(config: Mapping[str, Any]) -> dict[str, str]:
    """The classes of a chain that are Python classes here and not in Java, by key."""
    found = {}
    for key, (kind, name) in chain_classes(config).items():
        try:
            resolved = resolve(kind, name)
        except ConfigError:
            continue  # Reported with every other wrong key.
        if not (resolved.name.startswith(_APACHE) or resolved.is_java):
            found[key] = resolved.name
    return found


def without_chain(config: Mapping[str, str]) -> dict[str, str]:
    """A configuration without converters, transformations and predicates."""
    chain = (TRANSFORMATION_KIND.list_key, PREDICATE_KIND.list_key, *CONVERTERS)
    return {
        key: value for key, value in config.items() if not any(key == own or key.startswith(f"{own}.") for own in chain)
    }


def for_java(config: Mapping[str, str]) -> Mapping[str, str]:
    """What Java gets of a configuration: no chain that it does not run, because it would look for its classes."""
    return without_chain(config) if python_classes(config) else config
