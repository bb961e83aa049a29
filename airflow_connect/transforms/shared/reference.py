"""What the reference page of transformations and predicates is made of."""

from __future__ import annotations

import inspect
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef


def transformations() -> dict[str, tuple[str, ConfigDef]]:
    """Names of each transformation, what it does, its keys."""
    return _sections(plugins.PluginKind.TRANSFORMATION)


def predicates() -> dict[str, tuple[str, ConfigDef]]:
    """The same of each predicate."""
    return _sections(plugins.PluginKind.PREDICATE)


def _sections(kind: plugins.PluginKind) -> dict[str, tuple[str, ConfigDef]]:
    names: dict[str, list[str]] = {}
    for java_name in plugins.built_in(kind):
        names.setdefault(java_name.partition("$")[0], []).append(java_name.rpartition(".")[2])
    sections = {}
    for full, variants in names.items():
        found: Any = plugins.load_class(kind, f"{full}$Value" if len(variants) > 1 else full)
        module = inspect.getmodule(found)
        described = getattr(module, full.rpartition(".")[2])
        sections[", ".join(variants)] = (
            " ".join((inspect.getdoc(described) or "").split("\n\n")[0].split()),
            found.config_def,
        )
    return sections
