"""Which values a form offers and which keys it shows: calls the recommenders of a ConfigDef in Connect's order.

Source: org.apache.kafka.common.config.ConfigDef.validate (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.values import InvalidValueError
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.config.config_def import ConfigKey, ConfigValue, Recommender


def recommend(keys: Mapping[str, ConfigKey], values: Mapping[str, ConfigValue], parsed: Mapping[str, Any]) -> None:
    """Fill `recommended_values` and `visible` of `values`; exceptions of recommenders become errors of their keys.

    Parents come before their dependents. For a key with two parents, the recommender is called twice, and only the
    values in both results stay recommended.
    """
    children = {name for key in keys.values() for name in key.dependents}
    for name in keys:
        if name not in children:
            _recommend_below(name, keys, values, parsed, ())


def _recommend_below(
    name: str,
    keys: Mapping[str, ConfigKey],
    values: Mapping[str, ConfigValue],
    parsed: Mapping[str, Any],
    above: tuple[str, ...],
) -> None:
    key = keys.get(name)
    if key is None or name in above:
        return
    if key.recommender is not None:
        _ask(key.recommender, values[name], parsed)
    for dependent in key.dependents:
        _recommend_below(dependent, keys, values, parsed, (*above, name))


def _ask(recommender: Recommender, outcome: ConfigValue, parsed: Mapping[str, Any]) -> None:
    try:
        proposed = list(recommender.valid_values(outcome.name, parsed))
        earlier = outcome.recommended_values
        outcome.recommended_values = [value for value in proposed if not earlier or value in earlier]
        outcome.visible = recommender.visible(outcome.name, parsed)
    except InvalidValueError as error:
        outcome.errors.append(str(error))
    except ConfigError as error:
        outcome.errors.append(error.message)
        outcome.suggestions.append(error.suggestion)
    except Exception as error:  # noqa: BLE001 (code of plugins; what its message holds is not known)
        outcome.errors.append(f"No values can be recommended for {outcome.name}: {type(error).__name__}.")
