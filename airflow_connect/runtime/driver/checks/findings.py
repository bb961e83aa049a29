"""Findings about a configuration, as `validate` shows them: `key`, `message`, `suggestion`, `level`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.kafka.clients import settings as client_config

if TYPE_CHECKING:
    from airflow_connect.api.config.config_def import ConfigDef, ConfigValue, UnknownKey
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.config.resolved.loading import ResolvedConfig
    from airflow_connect.config.resolved.source import ResolvedSourceConfig
    from airflow_connect.config_providers.resolving import LookUp
    from airflow_connect.errors import ConnectError

Finding = dict[str, Any]


def collected(
    looked_up: LookUp, raw: Mapping[str, Any], check: Callable[[ResolvedReferences], list[Finding]]
) -> list[Finding]:
    """Findings about references, then about keys; if there are none, those of `check`.

    Args:
        looked_up: the references of both configurations, as far as they can be looked up.
        raw: the connector's configuration.
        check: checks the configuration as a whole.

    Raises:
        ConnectError: the connector's class cannot be loaded.
    """
    found = [of_error(problem) for problem in looked_up.problems]
    unseen = {problem.config_path for problem in (*looked_up.problems, *looked_up.elsewhere)}
    with looked_up.references.hiding_errors():
        connector = looked_up.references.resolve(raw)
        definition = connector_definition(connector)
        wrong = [v for v in definition.validate(connector) if v.errors and v.name not in unseen]
        found += [of_value(definition, value) for value in wrong]
        if not found and not unseen:
            found += check(looked_up.references)
    found += [remark(e.config_path, e.message, "unknown", e.suggestion) for e in looked_up.elsewhere]
    found += [remark(u.key, u.sentence(), "unknown") for u in looked_up.unknown]
    return found


def of_resolved(
    resolved: ResolvedConfig | ResolvedSourceConfig, worker: Mapping[str, Any], references: ResolvedReferences
) -> list[Finding]:
    """Findings of converters and clients about their settings, then ignored and unknown keys.

    Args:
        resolved: both configurations; each key is valid by itself.
        worker: the worker's whole configuration.
        references: their values must not appear in a finding.
    """
    from airflow_connect.runtime.driver.checks import (
        offline as offline_checks,  # loads converters: not for an empty run
    )

    problems = list(offline_checks.offline_problems(resolved, worker))
    for problem in problems:
        references.hide_in_error(problem)
    found = [of_error(problem) for problem in problems]
    if not problems:
        found += [unknown(key) for key in offline_checks.unknown_converter_keys(resolved)]
    for config in (resolved.connector, resolved.worker):
        found += [remark(key.name, key.reason, "ignored") for key in config.ignored]
        found += [unknown(key) for key in config.unknown]
    found += [remark(key.name, key.reason, "ignored") for key in client_config.keys_without_prefix(worker)]
    return found


def of_error(error: ConnectError) -> Finding:
    """A mistake."""
    return remark(error.config_path, error.message, "error", error.suggestion)


def of_value(definition: ConfigDef, value: ConfigValue) -> Finding:
    """The mistakes of one key in one finding: later errors usually follow from the first one."""
    sentences = [definition.error_of([replace(value, errors=[error])]).message for error in value.errors]
    return remark(value.name, " ".join(dict.fromkeys(sentences)), "error", definition.error_of([value]).suggestion)


def unknown(key: UnknownKey) -> Finding:
    """An unknown key."""
    return remark(key.name, "Unknown key.", "unknown", f"Did you mean {key.nearest}?" if key.nearest else "")


def remark(key: str, message: str, level: str, suggestion: str = "") -> Finding:
    """One finding."""
    return {"key": key, "message": message, "suggestion": suggestion, "level": level}
