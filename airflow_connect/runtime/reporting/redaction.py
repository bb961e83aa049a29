"""What is secret in the input of a run, and configurations as people may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.references import ResolvedReferences, is_reference
from airflow_connect.api.config.secrets import MIN_SECRET_LENGTH, Redactor, secret_values
from airflow_connect.api.config.values import HIDDEN, is_secret_name

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

__all__ = ["MIN_SECRET_LENGTH", "Redactor", "redactor_of_run", "secret_values", "shown_config"]


def redactor_of_run(spec: RunSpec, references: ResolvedReferences) -> Redactor:
    """Hides everything that is secret in the input of a run.

    Args:
        spec: of the run.
        references: the values of its references.
    """
    from airflow_connect.config.resolved.loading import secret_names

    aws = {key: spec.aws[key] for key in ("secret_access_key", "session_token") if spec.aws.get(key)}
    known = secret_values(spec.connector, spec.worker, aws, secret_names=secret_names(spec.connector))
    return Redactor(known, references)


def shown_config(config: Mapping[str, Any], redact: Redactor, names: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A configuration for people: secrets are hidden, even short ones; references stay.

    Args:
        config: to be shown.
        redact: hides secrets inside other values.
        names: keys of type PASSWORD, in addition to those with names that suggest a secret.
    """
    return {key: _shown(value, redact, names, key in names or is_secret_name(key)) for key, value in config.items()}


def _shown(value: Any, redact: Redactor, names: frozenset[str], is_secret: bool) -> Any:
    if isinstance(value, Mapping):
        return shown_config(value, redact, names)
    if isinstance(value, (list, tuple)):
        return [_shown(inner, redact, names, is_secret) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return HIDDEN if value is not None and is_secret else value
    text = str(value)
    return HIDDEN if is_secret and not is_reference(text) else redact(text)
