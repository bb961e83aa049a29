"""What a Java connector itself says about a configuration (`Connector.validate`).

It may open connections, as Kafka Connect allows: only who creates a connector, or asks for it, waits for that. Forms
and DAGs do with the keys that the class defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.api.config import plugins
from airflow_connect.api.config.references import ResolvedReferences, ResolvedText
from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.config.keys.source import source_keys
from airflow_connect.config.resolved.java_chain import JavaChainConfig, with_hosts_of_worker
from airflow_connect.config.resolved.loading import ResolvedConfig
from airflow_connect.config.resolved.own_chain import completed
from airflow_connect.config.resolved.source import ResolvedSourceConfig
from airflow_connect.config_providers.resolving import look_up
from airflow_connect.connectors.java.group import is_member
from airflow_connect.connectors.java.hosts import HostSettings, java_config
from airflow_connect.connectors.java.mixed import python_classes
from airflow_connect.counting import names
from airflow_connect.errors import ConfigError, JavaBlockedError, JavaPluginError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin, plugins_of_classes, registered
from airflow_connect.jvm.discovery.registry import PLUGIN_PATH
from airflow_connect.jvm.discovery.runtime_types import SINK
from airflow_connect.jvm.discovery.same_plugins import UsedPlugin, used_plugins
from airflow_connect.runtime.driver.checks.findings import Finding, of_error, remark
from airflow_connect.runtime.spec import RunSpec

VALIDATE_TIMEOUT_S = 60.0
_RUNTIME = "org.apache.kafka.connect.runtime"
_HARMLESS = frozenset((f"{_RUNTIME}.InternalSinkRecord", f"{_RUNTIME}.errors.ProcessingContext"))
"""Classes that plugins look at if they are there."""
Infos = dict[str, Any]
"""ConfigInfos of Kafka Connect's REST API."""


class JavaAnswer(NamedTuple):
    """What a Java class says about a configuration.

    Attributes:
        findings: its errors, as `validate` shows them.
        complete: adds what it says to the ConfigInfos of the connector's definition.
    """

    findings: Sequence[Finding] = ()
    complete: Callable[[Infos], Infos] = lambda own: own


def java_connector(connector: Mapping[str, Any]) -> JavaPlugin | None:
    """The Java class of a configuration; None if it names a Python class, or nothing that is known."""
    try:
        reference = plugins.resolve_connector(connector)
    except ConfigError:
        return None
    return registered(reference.name) if reference.is_java else None


def plugins_of(connector: Mapping[str, Any], chain: JavaChainConfig | None = None) -> tuple[UsedPlugin, ...]:
    """What tasks compare with the Java plugins of their machine; () for a run without Java classes.

    Args:
        connector: the configuration; a Java connector runs the Java classes of it.
        chain: Java classes in the chain of any other connector.
    """
    plugin = java_connector(connector)
    of_connector = () if plugin is None else plugin.with_chain(connector)
    in_chain = () if chain is None else plugins_of_classes(chain.class_names)
    return used_plugins((*of_connector, *in_chain))


def notes_on_class(connector: Mapping[str, Any], worker: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences for a plan: which of two classes of one name it is; what of its folder cannot be read; what it lacks.

    What a Java class may expect, and does not find here, is a worker of Kafka Connect.

    Args:
        connector: the configuration.
        worker: that of its worker. This process may also know the plugin paths of others.
    """
    if not worker.get(PLUGIN_PATH):
        return ()
    notes = plugins.note_on_choice(connector)
    plugin = java_connector(connector)
    if plugin is None:
        return notes
    notes += (*plugin.known.location.warnings, *plugin.known.scanned.warnings)
    uses = {name: used for name, found in plugin.runtime_uses.items() if (used := sorted({*found} - _HARMLESS))}
    if uses:
        which = names(f"{name} ({', '.join(used)})" for name, used in uses.items())
        text = f"{plugin.class_name}: classes of its folder use Kafka Connect's worker itself"
        is_served = SINK in plugin.kinds and is_member(plugin.class_name, completed(connector, worker))
        what = "each of its tasks joins the consumer group instead" if is_served else "which does not run here"
        notes += (f"{text}, {what}: {which}.",)
    if in_python := python_classes(completed(connector, worker)):
        key, name = next(iter(in_python.items()))
        why = f"because {key} ({name}) is a Python class: records pass between it and {plugin.class_name} one by one."
        notes += (f"Python runs the converters and transformations of this connector, {why}",)
    return notes


def notes_on_chain(resolved: ResolvedConfig | ResolvedSourceConfig) -> tuple[str, ...]:
    """A sentence for a plan, if its chain has Java classes."""
    return () if resolved.java is None else resolved.java.notes


def java_infos(plugin: JavaPlugin, connector: Mapping[str, Any]) -> Infos:
    """What Java says about the keys of a connector.

    Args:
        plugin: its class.
        connector: the configuration, references resolved.

    Raises:
        JavaPluginError, ConfigError: the class failed, or refuses to say anything about such a configuration.
        JavaBlockedError: it did not answer in time.
        ConnectError: no JVM can be started.
    """
    config = {key: str(value) for key, value in connector.items() if value is not None}
    with HostSettings.of(plugin, config, is_driver=True).start() as host:
        given = java_config(config, plugin.class_name)
        infos: Infos = host.call("validate", timeout_s=VALIDATE_TIMEOUT_S, config=given).result
    return infos


def java_answer(spec: RunSpec) -> JavaAnswer:
    """What a Java connector says about its configuration; nothing for other connectors.

    Raises:
        ConfigError: a reference cannot be resolved.
        ConnectError: no JVM can be started.
    """
    references = look_up(spec.connector, spec.worker, spec.references).references
    connector = with_hosts_of_worker(references.resolve(spec.connector), references.resolve(spec.worker))
    plugin = java_connector(connector)
    if plugin is None:
        return JavaAnswer()
    try:
        infos = java_infos(plugin, connector)
    except (JavaPluginError, JavaBlockedError, ConfigError) as error:
        references.hide_in_error(error)
        return JavaAnswer([of_error(error)])
    values = (config["value"] for config in infos["configs"])
    found = [remark(value["name"], references.hide(text), "error") for value in values for text in value["errors"]]
    return JavaAnswer(found, lambda own: with_java(own, infos, connector, is_sink=plugin.is_sink))


def with_java(own: Infos, java: Infos, connector: Mapping[str, Any], *, is_sink: bool) -> Infos:
    """Both answers as one: Java's for the keys of its class, ours for those of every connector.

    References stay as they are written, because Java would show their values.

    Args:
        own: what the definition of the connector says.
        java: what Java says.
        connector: the configuration, references resolved.
        is_sink: which keys every connector of its kind has.
    """
    shared = sink_keys().keys if is_sink else source_keys().keys
    references = {name: value for name, value in connector.items() if isinstance(value, ResolvedText)}
    hide = ResolvedReferences({value.reference: str(value) for value in references.values()}).hide
    of_java = {config["value"]["name"]: _hiding(config, hide, references) for config in java["configs"]}
    configs = []
    for config in own["configs"]:
        name = config["value"]["name"]
        found = of_java.pop(name, None)
        if found is not None and name in shared:
            errors = list(dict.fromkeys((*config["value"]["errors"], *found["value"]["errors"])))
            found = {**config, "value": {**config["value"], "errors": errors}}
        configs.append(found or config)
    configs += of_java.values()
    return {
        **own,
        "error_count": sum(len(config["value"]["errors"]) for config in configs),
        "groups": list(dict.fromkeys((*own["groups"], *java["groups"]))),
        "configs": configs,
    }


def _hiding(config: Infos, hide: Callable[[str], str], references: Mapping[str, ResolvedText]) -> Infos:
    """What Java says about a key, without values of references."""
    hidden = {part: [hide(str(text)) for text in config["value"][part]] for part in ("errors", "recommended_values")}
    value = {**config["value"], **hidden}
    if value["name"] in references:
        value["value"] = references[value["name"]].reference
    return {**config, "value": value}
