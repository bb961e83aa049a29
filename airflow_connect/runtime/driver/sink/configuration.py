"""Everything the driver takes from the two configurations of a sink's run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.infos import config_infos
from airflow_connect.api.config.references import ResolvedText, as_written
from airflow_connect.api.config.values import HIDDEN, coerce_config
from airflow_connect.api.sink import Delivery
from airflow_connect.api.sink_roles import SinkGroup
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.config.resolved.client_layers import CONSUMER
from airflow_connect.config.resolved.loading import ResolvedConfig, connector_definition, load_connector_config
from airflow_connect.config.resolved.sink import CONVERTER_TYPE
from airflow_connect.config_providers.resolving import look_up
from airflow_connect.errors import ConfigError
from airflow_connect.exactly_once.guarantee import AT_LEAST_ONCE, Guarantee
from airflow_connect.kafka.clients.java_properties import java_properties
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import Policy
from airflow_connect.planning.splitting import SplitRules
from airflow_connect.runtime.driver.checked_configuration import CheckedConfiguration
from airflow_connect.runtime.driver.checks.java import notes_on_chain, notes_on_class, plugins_of
from airflow_connect.runtime.driver.checks.sinks import refuse_unusable_sink
from airflow_connect.runtime.driver.checks.splitting import why_not_split
from airflow_connect.runtime.driver.sink.started_sink import StartedSink
from airflow_connect.runtime.driver.started import ConnectorRun
from airflow_connect.runtime.executor.transforming import TransformChain
from airflow_connect.runtime.settings import TaskSettings

if TYPE_CHECKING:
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.api.sink import SinkConnector, Splitting
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.runtime.spec import RunSpec

_REPLAYED_BY_KEY = (
    "This replay writes older records again, and finds rows or documents by keys. If it writes to those of the"
    " connector, they have the values of the end of the range afterwards, and what was deleted later is there again:"
    " records beyond the range, also those that the connector copies meanwhile, must be written again. So replay up to"
    " what the connector has copied, while it does not run, or into another table or index."
)


class SinkConfiguration(CheckedConfiguration[ResolvedConfig]):
    """Everything the driver takes from the two configurations of a sink."""

    @classmethod
    def _of(cls, spec: RunSpec, references: ResolvedReferences) -> SinkConfiguration:
        connector, worker = references.resolve(spec.connector), references.resolve(spec.worker)
        definition = connector_definition(connector)
        resolved = load_connector_config(connector, worker, definition)
        configuration = cls(spec, resolved, definition, worker, references)
        refuse_unusable_sink(resolved.connector.connector.name, configuration.connector_class, resolved.connector.raw)
        configuration.sink.check()
        # Only the class itself can check some settings, such as a path to a field: do it now, not during the copy.
        TransformChain.open(resolved.connector.transforms).close()
        return configuration

    @classmethod
    def infos(cls, spec: RunSpec) -> dict[str, Any]:
        """Kafka Connect's ConfigInfos of the connector; a reference that cannot be looked up stays as it is.

        Raises:
            ConfigError: the class of the connector, or a config provider of the worker, is wrong.
        """
        references = look_up(spec.connector, spec.worker, spec.references).references
        with references.hiding_errors():
            connector = references.resolve(spec.connector)
            definition = connector_definition(connector)
            return config_infos(str(as_written(connector)[sink_keys.CONNECTOR_CLASS]), definition, connector)

    @property
    def tasks_max(self) -> int:
        """`tasks.max`, or fewer if the connector returns fewer configurations."""
        return len(self.task_configs) or self.resolved.connector.tasks_max

    @cached_property
    def task_configs(self) -> Sequence[Mapping[str, str]]:
        """The configurations of the tasks; () if every task uses the connector's own."""
        return self.sink.task_configs(self.resolved.connector.tasks_max)

    @property
    def connector_class(self) -> type[SinkConnector]:
        """The connector's class."""
        loaded: type[SinkConnector] = plugins.load(self.resolved.connector.connector)
        return loaded

    @cached_property
    def sink(self) -> StartedSink:
        """The connector object: the only one of this configuration, started on first use. The run stops it."""
        connector = self.resolved.connector
        run = ConnectorRun(
            connector.raw,
            self.run_id,
            dict(self.spec.aws),
            admin_settings=lambda: self.admin.settings,
            group=self._group,
        )
        return StartedSink(self.connector_class, run, overwrite=self.guarantee.overwrites)

    def _group(self) -> SinkGroup:
        java = java_properties(self.worker, self.resolved.connector.raw, CONSUMER)
        return SinkGroup(self.resolved.consumer_group, self.consumer.settings, java)

    @property
    def commits_offsets(self) -> bool:
        """Whether the connector's tasks move the offsets of the group themselves."""
        return self.connector_class.commits_offsets(self.resolved.connector.raw)

    @cached_property
    def delivery(self) -> Delivery:
        """What the connector class declares for this configuration."""
        return self.connector_class.delivery_for(self.resolved.connector.raw)

    @property
    def max_failed_records(self) -> int | None:
        """`errors.max.records`; None is no limit."""
        return self.resolved.connector.errors.max_records

    @property
    def dead_letter_topic(self) -> str:
        """`errors.deadletterqueue.topic.name`; "": there is none."""
        return self.resolved.connector.errors.dead_letter_topic

    @cached_property
    def guarantee(self) -> Guarantee:
        """`delivery.guarantee`; by default the best one that the sink supports."""
        connector = self.resolved.connector
        if self.delivery is Delivery.AT_LEAST_ONCE and SinkKeys.delivery_guarantee.name not in connector.raw:
            return AT_LEAST_ONCE
        return Guarantee.of(connector.delivery_guarantee)

    @property
    def delivery_notes(self) -> tuple[str, ...]:
        """Sentences about a sink that does not stage: what is visible before the commit, and what a crash repeats."""
        name = self.resolved.connector.connector.name
        if self.delivery is Delivery.AT_LEAST_ONCE:
            return (f"{name} delivers at least once: after a run that failed, records are written again.",)
        if self.delivery in (Delivery.IDEMPOTENT, Delivery.TRANSACTIONAL):
            return (f"{name} writes while it copies: records are stored once, but are visible before the commit.",)
        return ()

    @property
    def sink_notes(self) -> tuple[str, ...]:
        """Which of two classes it is, which are Java, and what the connector says about this configuration."""
        raw = self.resolved.connector.raw
        return (
            *notes_on_class(raw, self.worker),
            *notes_on_chain(self.resolved),
            *self.connector_class.notes_on_config(raw),
            *self._notes_on_replay(),
        )

    def _notes_on_replay(self) -> tuple[str, ...]:
        """What a replay to the place of its connector means for rows that are found by keys.

        Not for a sink whose target compares versions: it takes an old record for what it is.
        """
        if not self.spec.bounds.get("keeps_within_copied"):
            return ()
        replaces = self.connector_class.replaces_by_key(self.resolved.connector.raw, same_offsets=True)
        return (_REPLAYED_BY_KEY,) if replaces else ()

    @property
    def policy(self) -> Policy:
        """What decides about offsets."""
        connector = self.resolved.connector
        return Policy(
            auto_offset_reset=self.consumer.auto_offset_reset,
            out_of_range=connector.offsets_out_of_range,
            limits=RunLimits(
                max_records=connector.run_max_records,
                max_bytes=connector.run_max_bytes,
                max_seconds=connector.run_max_seconds,
                until_timestamp_ms=connector.run_until_timestamp_ms,
            ),
            group=self.resolved.consumer_group,
            target=self.sink.store_name if self.sink.keeps_offsets else "",
        )

    @property
    def split_rules(self) -> SplitRules:
        """Whether several tasks may copy one partition."""
        return SplitRules(self._splitting, self.resolved.connector.split_min_records)

    def _splitting(self) -> Splitting:
        declared = self.sink.splitting()
        differ = bool(self.task_configs)
        why = why_not_split(self.resolved.connector, self.delivery, self.guarantee, declared, tasks_differ=differ)
        return replace(declared, refused=why)

    def task_settings(self, now_ms: int) -> TaskSettings:
        """What tasks get."""
        return TaskSettings(
            connector=self.resolved.connector.raw,
            worker=dict(self.worker),
            resolved=self.resolved,
            aws=dict(self.spec.aws),
            run_id=self.run_id,
            now_ms=now_ms,
            flush_on_end=self.resolved.connector.flush_on_end,
            task_configs=self.task_configs,
            together=self.commits_offsets,
            java_plugins=plugins_of(self.resolved.connector.raw, self.resolved.java),
        )

    def without_secrets(self) -> dict[str, str]:
        """The connector's configuration as a manifest may hold it: references as written, secret values left out.

        Includes the converters of the worker, because the worker may have others when a file is copied again.
        """
        complete = as_written(self._with_converters())
        masked = self.definition.masked(complete)
        return {key: value for key, value in complete.items() if masked.get(key) == value}

    def _with_converters(self) -> dict[str, str]:
        used = (
            (sink_keys.KEY_CONVERTER, self.resolved.connector.key_converter, self.resolved.key_converter),
            (sink_keys.VALUE_CONVERTER, self.resolved.connector.value_converter, self.resolved.value_converter),
            (sink_keys.HEADER_CONVERTER, self.resolved.connector.header_converter, self.resolved.header_converter),
        )
        complete = dict(self.resolved.connector.raw)
        for key, own, effective in used:
            if own is None:
                # Nested keys without their converter have no effect, and must not get one now.
                complete = {name: value for name, value in complete.items() if not name.startswith(f"{key}.")}
                complete[key] = effective.plugin.name
                nested = {f"{key}.{name}": value for name, value in effective.settings.items()}
                nested.pop(f"{key}.{CONVERTER_TYPE}", None)
                complete.update(nested)
        return complete

    def with_manifest(self, manifest: Manifest) -> SinkConfiguration:
        """This configuration with the layout of a manifest's run, but with current secrets: they may have been rotated.

        So are settings that no staged file depends on (`StagingSinkConnector.uses_current`): the address of a service
        that has moved must not prevent the commit of the files. References of the manifest are resolved again.

        Raises:
            ConfigError: a reference cannot be resolved, or has another value than when the files were staged.
        """
        now = as_written(self._with_converters())
        secrets = {key: value for key, value in now.items() if self._is_secret(key, value)}
        limits = {SinkKeys.run_max_bytes.name, SinkKeys.run_max_seconds.name}
        connector = {
            key: value
            for key, value in coerce_config({**self._of_manifest(now, manifest.config), **secrets}).items()
            if key not in limits and value is not None
        }
        references = self.references.values
        there = SinkConfiguration.from_spec(
            replace(self.spec, connector=connector, run_id=manifest.run_id, references=references)
        )
        there._refuse_changed_references(manifest)
        return there

    def _of_manifest(self, now: Mapping[str, Any], staged: Mapping[str, str]) -> dict[str, Any]:
        """The configuration that staged files, with the current values of keys that no file depends on."""
        kept = {key: value for key, value in staged.items() if not self.sink.uses_current(key, staged)}
        return {**kept, **{key: value for key, value in now.items() if self.sink.uses_current(key, staged)}}

    def reference_marks(self) -> dict[str, str]:
        """By key of `without_secrets`: a mark of the value of its references, without secrets.

        A mark has 32 bits: enough to detect a change, too few to find the value by brute force.
        """
        complete = self._with_converters()
        return {
            key: hashlib.sha256("\0".join((self.run_id, key, value)).encode()).hexdigest()[:8]
            for key, value in complete.items()
            if isinstance(value, ResolvedText) and not self._is_secret(key, str(value))
        }

    def _refuse_changed_references(self, manifest: Manifest) -> None:
        """The manifest's configuration tells where its files are: its references must still have the same values."""
        now = self.reference_marks()
        for key, mark in manifest.reference_marks.items():
            if now.get(key) != mark and not self.sink.uses_current(key, manifest.config):
                raise ConfigError(
                    f"Run {manifest.run_id} staged its files under {key}={manifest.config.get(key)}, but this reference"
                    " has another value now, so the files cannot be found.",
                    code="config.reference_changed",
                    suggestion="Restore its former value until that run is recovered, then change it.",
                    config_path=key,
                )

    def _is_secret(self, key: str, value: str) -> bool:
        """Whether a value under this key is hidden; a reference in place of a secret counts as one."""
        return (
            HIDDEN in self.definition.masked({key: value}).values()
            or HIDDEN in self.definition.masked({key: "x"}).values()
        )
