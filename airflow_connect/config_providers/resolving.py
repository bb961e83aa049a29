"""From two configurations to what their references stand for: find them, ask the providers, say what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_connect.api import plugins
from airflow_connect.api.config_provider import ConfigProvider
from airflow_connect.api.config_references import Reference, ResolvedReferences, references_in
from airflow_connect.api.config_values import coerce_config
from airflow_connect.api.errors import ConfigError, ConnectError

CONFIG_PROVIDERS = "config.providers"
AIRFLOW = "airflow"
_OUTSIDE_AIRFLOW = (
    "Start the run from Airflow; or, on a machine where Airflow is installed and set up, add"
    " config.providers=airflow and"
    " config.providers.airflow.class=airflow_connect.airflow.config_provider:AirflowConfigProvider to the worker."
)

ProviderFactory = Callable[[], ConfigProvider]


class UnknownProvider(NamedTuple):
    """A configuration key whose value has a reference to a provider that nobody has set up."""

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
        references: what could be found.
        problems: an error for every configuration key that refers to something that could not; `config_path` is the
            key.
        unknown: references that stay as they are, as in Kafka Connect.
        elsewhere: as `problems`, for what only Airflow knows while this is not Airflow.
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
    """What every reference of the two configurations stands for.

    Args:
        connector, worker: as written; the worker sets the providers up.
        known: references that are not asked for again.
        providers: those that exist without being set up; a worker that sets one up under the same name wins.

    Raises:
        ConfigError: a provider is set up wrongly, or something that is referred to is not there.
        UnavailableError: a provider's server did not answer.
    """
    found = look_up(connector, worker, known, providers)
    problems = [*found.problems, *found.elsewhere]
    if not problems:
        return found.references
    # One that may pass decides about a retry: with it the others are looked at again.
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
        ConfigError: a provider is set up wrongly.
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
            # What sets the providers up cannot need them.
            if isinstance(value, str) and not (config is worker and key.startswith(CONFIG_PROVIDERS)):
                yield from (_Use(key, reference) for reference in references_in(value))


def _declared(worker: Mapping[str, Any]) -> dict[str, ProviderFactory]:
    """The providers of `config.providers`; each is made and configured once here, to find mistakes while unused."""
    config = {n: v or "" for n, v in coerce_config(worker).items() if n.startswith(CONFIG_PROVIDERS)}
    names = [name.strip() for name in config.get(CONFIG_PROVIDERS, "").split(",") if name.strip()]
    factories: dict[str, ProviderFactory] = {}
    for name in dict.fromkeys(names):
        factories[name] = _factory(name, config)
        factories[name]().close()
    return factories


def _factory(name: str, config: Mapping[str, str]) -> ProviderFactory:
    key = f"{CONFIG_PROVIDERS}.{name}.class"
    known = ", ".join(plugins.aliases(plugins.PluginKind.CONFIG_PROVIDER))
    if not config.get(key, "").strip():
        raise ConfigError(
            f'Missing required configuration "{key}" which has no default value: {CONFIG_PROVIDERS} lists {name}.',
            config_path=key,
            suggestion=f"Set {key} to {known} or a class of your own, package.module:Class.",
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
        except Exception as error:  # code of others: the message may hold a setting that is secret
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
    """Ask for all keys of one place at once, as Kafka Connect does."""
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
    except Exception as error:  # noqa: BLE001 (code of others; what its message holds is not known, so it is not shown)
        why = f"the config provider {name!r} failed with {type(error).__name__}"
        outcome.problems += [_problem(use, why, "Ask those who wrote the provider.") for use in group]
        return
    for use in group:
        value = found.get(use.reference.key)
        if isinstance(value, str):
            values[use.reference.text] = value
        else:
            outcome.problems.append(_missing(use, name, path))


def _missing(use: _Use, name: str, path: str) -> ConfigError:
    where = f"{name!r} has nothing called {use.reference.key!r}" + (f" under {path!r}" if path else "")
    return _problem(use, f"the config provider {where}", "Correct the reference, or add what it refers to.")


def _problem(use: _Use, why: str, suggestion: str) -> ConfigError:
    return ConfigError(
        f"Configuration {use.key} refers to {use.reference.text}, but {why}.",
        code="config.reference_missing",
        suggestion=suggestion,
        config_path=use.key,
    )


def _with_key(use: _Use, error: ConnectError) -> ConnectError:
    """The error of a provider, with the configuration key that had the reference."""
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
        f"{len(problems)} references to config providers lead nowhere: {numbered}",
        code=problems[0].code,
        suggestion=suggestions,
        config_path=problems[0].config_path,
    )
