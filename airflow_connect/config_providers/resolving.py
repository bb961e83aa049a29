"""Resolves the references of two configurations: finds them, asks the providers, reports what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_connect.api.config import plugins
from airflow_connect.api.config.references import Reference, ResolvedReferences, references_in
from airflow_connect.api.config.values import coerce_config
from airflow_connect.api.config_provider import ConfigProvider
from airflow_connect.errors import ConfigError, ConnectError

CONFIG_PROVIDERS = "config.providers"
AIRFLOW = "airflow"
_PLUGIN_PATH = "plugin.path"
_USE_PLUGIN_PATH = "airflow_connect.jvm.discovery.registry:use_plugin_path"
"""By its path, because it is in a layer above this one, as plugins are."""
_OUTSIDE_AIRFLOW = (
    "Start the run from Airflow; or, on a machine where Airflow is installed and configured, add"
    " config.providers=airflow and"
    " config.providers.airflow.class=airflow_connect.airflow.config_provider:AirflowConfigProvider to the worker."
)

ProviderFactory = Callable[[], ConfigProvider]


class UnknownProvider(NamedTuple):
    """A configuration key whose value refers to a provider that is not configured."""

    key: str
    reference: str
    provider: str

    def sentence(self) -> str:
        """For people."""
        return (
            f"The value of {self.key} names the config provider {self.provider!r}, which {CONFIG_PROVIDERS} of the"
            f" worker does not list; {self.reference} stays as it is."
        )


@dataclass(slots=True)
class LookUp:
    """The outcome for two configurations.

    Attributes:
        references: the resolved references.
        problems: an error for every configuration key with a reference that could not be resolved; `config_path` is
            the key.
        unknown: references that stay as they are, as in Kafka Connect.
        elsewhere: as `problems`, for references that only Airflow can resolve, outside Airflow.
    """

    references: ResolvedReferences
    problems: list[ConnectError] = field(default_factory=list)
    unknown: list[UnknownProvider] = field(default_factory=list)
    elsewhere: list[ConnectError] = field(default_factory=list)


class _Use(NamedTuple):
    """A reference and the configuration key that has it."""

    key: str
    reference: Reference


def resolve_references(
    connector: Mapping[str, Any],
    worker: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
    providers: Mapping[str, ProviderFactory] | None = None,
) -> ResolvedReferences:
    """The value of every reference in the two configurations.

    Args:
        connector, worker: as written; the worker configures the providers.
        known: references that are already resolved.
        providers: providers that need no configuration; one that the worker configures under the same name wins.

    Raises:
        ConfigError: a provider is configured wrongly, or the target of a reference is missing.
        UnavailableError: a provider's server did not answer.
    """
    found = look_up(connector, worker, known, providers)
    problems = [*found.problems, *found.elsewhere]
    if not problems:
        return found.references
    # A retriable problem takes precedence: the retry checks the others again.
    worst = next((problem for problem in problems if problem.retriable), problems[0])
    if len(problems) > 1 and worst is problems[0] and isinstance(worst, ConfigError):
        raise _merged(problems)
    raise worst


def look_up(
    connector: Mapping[str, Any],
    worker: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
    providers: Mapping[str, ProviderFactory] | None = None,
) -> LookUp:
    """As `resolve_references`, but collects what is missing instead of raising it.

    Raises:
        ConfigError: a provider is configured wrongly.
    """
    values = dict(known or {})
    uses = [use for use in _uses(connector, worker) if use.reference.text not in values]
    declared = _declared(worker)
    by_place: dict[tuple[str, str], list[_Use]] = {}
    outcome = LookUp(ResolvedReferences(values))
    available = {**(providers or {}), **declared}
    for use in uses:
        name = use.reference.provider
        if name in available:
            by_place.setdefault((name, use.reference.path), []).append(use)
        elif name == AIRFLOW:
            why = "only Airflow knows its connections and variables"
            outcome.elsewhere.append(_problem(use, why, _OUTSIDE_AIRFLOW))
        else:
            outcome.unknown.append(UnknownProvider(use.key, use.reference.text, name))
    for (name, path), group in by_place.items():
        with closing(available[name]()) as provider:
            _ask(provider, name, path, group, outcome, values)
    return outcome


def _uses(connector: Mapping[str, Any], worker: Mapping[str, Any]) -> Iterator[_Use]:
    for config in (connector, worker):
        for key, value in config.items():
            # Keys that configure providers cannot refer to them.
            if isinstance(value, str) and not (config is worker and key.startswith(CONFIG_PROVIDERS)):
                yield from (_Use(key, reference) for reference in references_in(value))


def _declared(worker: Mapping[str, Any]) -> dict[str, ProviderFactory]:
    """The providers of `config.providers`; creates each one once, to find mistakes even in unused ones."""
    config = {n: v or "" for n, v in coerce_config(worker).items() if n.startswith(CONFIG_PROVIDERS)}
    names = [name.strip() for name in config.get(CONFIG_PROVIDERS, "").split(",") if name.strip()]
    factories: dict[str, ProviderFactory] = {}
    _look_in_plugin_path(worker, [config.get(f"{CONFIG_PROVIDERS}.{name}.class", "").strip() for name in names])
    for name in dict.fromkeys(names):
        factories[name] = _factory(name, config)
        factories[name]().close()
    return factories


def _look_in_plugin_path(worker: Mapping[str, Any], class_names: list[str]) -> None:
    """Make Java classes of the worker's `plugin.path` known if one of these classes is not known yet."""
    path = str(worker.get(_PLUGIN_PATH) or "").strip()
    if path and not references_in(path) and not all(map(_is_known, class_names)):
        plugins.load_path(_USE_PLUGIN_PATH)(worker)


def _is_known(class_name: str) -> bool:
    try:
        plugins.resolve(plugins.PluginKind.CONFIG_PROVIDER, class_name)
    except ConfigError:
        return False
    return True


def _factory(name: str, config: Mapping[str, str]) -> ProviderFactory:
    key = f"{CONFIG_PROVIDERS}.{name}.class"
    known = ", ".join(plugins.aliases(plugins.PluginKind.CONFIG_PROVIDER))
    if not config.get(key, "").strip():
        raise ConfigError(
            f'Missing required configuration "{key}" which has no default value: {CONFIG_PROVIDERS} lists {name}.',
            config_path=key,
            suggestion=f"Set {key} to {known}, or to your own class, package.module:Class.",
        )
    try:
        made_by = plugins.load_class(plugins.PluginKind.CONFIG_PROVIDER, config[key].strip())
    except ConfigError as error:
        raise ConfigError(
            f"{key}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=key
        ) from None
    prefix = f"{CONFIG_PROVIDERS}.{name}.param."
    settings = {n.removeprefix(prefix): value for n, value in config.items() if n.startswith(prefix)}

    def make() -> ConfigProvider:
        try:
            provider: ConfigProvider = made_by()
            provider.configure(settings)
        except ConfigError as error:
            path = f"{prefix}{error.config_path}" if error.config_path else key
            raise ConfigError(
                f"{path}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=path
            ) from error
        except Exception as error:  # third-party code: the message may contain a secret setting
            raise ConfigError(
                f"{key}: the config provider cannot be set up: {type(error).__name__}.",
                config_path=key,
                suggestion=f"Check {prefix}* and the documentation of the provider.",
            ) from error
        return provider

    return make


def _ask(
    provider: ConfigProvider, name: str, path: str, group: list[_Use], outcome: LookUp, values: dict[str, str]
) -> None:
    """Request all keys of one path at once, as Kafka Connect does."""
    try:
        found = provider.get(path, list(dict.fromkeys(use.reference.key for use in group)))
    except ConnectError as error:
        outcome.problems += [_with_key(use, error) for use in group]
        return
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        why = f"the config provider {name!r} needs the Python package {package}, which is not installed"
        extra = 'pip install "airflow-connect[airflow]"' if package == AIRFLOW else f"install {package}"
        outcome.problems += [_problem(use, why, f"On the machine where the run is started: {extra}") for use in group]
        return
    except Exception as error:  # noqa: BLE001 (third-party code: its message may contain a secret)
        why = f"the config provider {name!r} failed with {type(error).__name__}"
        outcome.problems += [_problem(use, why, "Contact the authors of the provider.") for use in group]
        return
    for use in group:
        value = found.get(use.reference.key)
        if isinstance(value, str):
            values[use.reference.text] = value
        else:
            outcome.problems.append(_missing(use, name, path))


def _missing(use: _Use, name: str, path: str) -> ConfigError:
    where = f"{name!r} has nothing called {use.reference.key!r}" + (f" under {path!r}" if path else "")
    return _problem(use, f"the config provider {where}", "Correct the reference, or add its target.")


def _problem(use: _Use, why: str, suggestion: str) -> ConfigError:
    return ConfigError(
        f"Configuration {use.key} refers to {use.reference.text}, but {why}.",
        code="config.reference_missing",
        suggestion=suggestion,
        config_path=use.key,
    )


def _with_key(use: _Use, error: ConnectError) -> ConnectError:
    """The error of a provider, with the configuration key that has the reference."""
    return type(error)(
        f"Configuration {use.key} refers to {use.reference.text}. {error.message}",
        code=error.code,
        suggestion=error.suggestion,
        config_path=use.key,
    )


def _merged(problems: list[ConnectError]) -> ConfigError:
    numbered = " ".join(f"({n}) {problem.message}" for n, problem in enumerate(problems, 1))
    suggestions = " ".join(dict.fromkeys(problem.suggestion for problem in problems if problem.suggestion))
    return ConfigError(
        f"{len(problems)} references to config providers cannot be resolved: {numbered}",
        code=problems[0].code,
        suggestion=suggestions,
        config_path=problems[0].config_path,
    )
