"""Everything the driver takes from the two configurations of a sink's run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api import connector_keys, plugins
from airflow_connect.api.config_infos import config_infos
from airflow_connect.api.config_references import ResolvedText, as_written
from airflow_connect.api.config_values import HIDDEN, coerce_config
from airflow_connect.api.connector_config import CONVERTER_TYPE
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.resolved_config import ResolvedConfig, connector_definition, load_connector_config
from airflow_connect.api.sink import Delivery
from airflow_connect.config_providers.resolving import look_up
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import Policy
from airflow_connect.runtime.driver.checked_configuration import CheckedConfiguration
from airflow_connect.runtime.executor.transforming import TransformChain
from airflow_connect.runtime.roles import load_role
from airflow_connect.runtime.settings import TaskSettings

if TYPE_CHECKING:
    from airflow_connect.api.config_references import ResolvedReferences
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.run import PublishedRun
    from airflow_connect.api.sink_roles import Jvm
    from airflow_connect.api.time_progress import TimeKeeper
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.runtime.spec import RunSpec
    from airflow_connect.stores.leftovers import LeftoverPattern
    from airflow_connect.stores.store import Publisher

_TABLES = "hive."
"""Keys about tables over files: no part of what was staged."""


class SinkDriver(Protocol):
    """Driver role of a sink that stages (`driver_role` of its connector class)."""

    @property
    def store_name(self) -> str:
        """Where files go, e.g. `s3://bucket`."""

    @property
    def counted_role(self) -> str | None:
        """Role of the files that hold one entry per written record: `value`, or `key` where null values are written.

        None: the sink stages no files, so nothing can be counted in them.
        """

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How files look that a run over `ranges` stages."""

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Whether a tick of `rotate.schedule.interval.ms` lies in `(last_run_ms, now_ms]`."""

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Configurations of at most `max_tasks` tasks; () where every task uses the connector's own.

        Raises:
            ConnectError: the connector cannot say.
        """

    def publisher(self) -> Publisher:
        """The store's publisher; no request yet."""

    def time_keeper(self, topics: Iterable[str]) -> TimeKeeper | None:
        """What finds out which directories of time are complete, where `topics` are consumed; None: nobody asks."""

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        """Schemas of the last published files of `partitions`, for those that have any; None: runs begin without one.

        As JsonConverter writes them, see `RoleContext.schemas_before`.

        Raises:
            ConnectError: the store refused, or did not answer; or a file cannot be read.
        """

    def published(self, run: PublishedRun, publisher: Publisher) -> Sequence[str] | None:
        """Do what has to follow publishing: called when every file of a manifest is visible, before its commit.

        Also for a manifest that is recovered, on the driver role of that run's own configuration. Idempotent: a crash
        before the commit has it repeated. Under `at_most_once` the commit comes first, and a crash can leave it out.

        Args:
            run: what is visible.
            publisher: the one that published; open, and closed by its owner.

        Returns:
            notes for people, if there are any.

        Raises:
            ConnectError: it did not work. Offsets stay where they are, and the next run publishes and calls again.
        """


class RunConfiguration(CheckedConfiguration[ResolvedConfig]):
    """Everything the driver takes from the two configurations of a sink."""

    @classmethod
    def _of(cls, spec: RunSpec, references: ResolvedReferences) -> RunConfiguration:
        connector, worker = references.resolve(spec.connector), references.resolve(spec.worker)
        definition = connector_definition(connector)
        resolved = load_connector_config(connector, worker, definition)
        configuration = cls(spec, resolved, definition, worker, references)
        configuration.open_driver()
        # What only a class itself can check, such as a path to a field, is found here and not in the middle of a copy.
        TransformChain.open(resolved.connector.transforms).close()
        return configuration

    @classmethod
    def infos(cls, spec: RunSpec) -> dict[str, Any]:
        """Kafka Connect's ConfigInfos of the connector; what cannot be looked up stays a reference.

        Raises:
            ConfigError: the class of the connector, or a config provider of the worker, is wrong.
        """
        references = look_up(spec.connector, spec.worker, spec.references).references
        with references.hiding_errors():
            connector = references.resolve(spec.connector)
            definition = connector_definition(connector)
            return config_infos(str(as_written(connector)[connector_keys.CONNECTOR_CLASS]), definition, connector)

    @property
    def tasks_max(self) -> int:
        """`tasks.max`, or fewer where the connector gives fewer configurations."""
        return len(self.task_configs) or self.resolved.connector.tasks_max

    @cached_property
    def task_configs(self) -> Sequence[Mapping[str, str]]:
        """What the connector configures its tasks with; () where every task uses the connector's own."""
        return self.open_driver().task_configs(self.resolved.connector.tasks_max)

    @cached_property
    def delivery(self) -> Delivery:
        """What the connector class declares for this configuration."""
        connector = plugins.load(self.resolved.connector.connector)
        declared: Delivery = getattr(connector, "delivery", Delivery.STAGED)  # Roles of its own need no base class.
        delivery_for = getattr(connector, "delivery_for", lambda _: declared)
        found: Delivery = delivery_for(self.resolved.connector.raw)
        return found

    @property
    def max_failed_records(self) -> int | None:
        """`errors.max.records`; None is no limit."""
        return self.resolved.connector.errors.max_records

    @property
    def delivery_guarantee(self) -> str:
        """`delivery.guarantee`; what is not set becomes the best that the sink can do."""
        connector = self.resolved.connector
        if self.delivery is Delivery.AT_LEAST_ONCE and connector_keys.DELIVERY_GUARANTEE not in connector.raw:
            return connector_keys.AT_LEAST_ONCE
        return connector.delivery_guarantee

    @property
    def delivery_notes(self) -> tuple[str, ...]:
        """Sentences about a sink that does not stage: what is visible before the commit, and what a crash repeats."""
        name = self.resolved.connector.connector.name
        if self.delivery is Delivery.AT_LEAST_ONCE:
            return (f"{name} delivers at least once: after a run that failed, records are written again.",)
        if self.delivery is Delivery.IDEMPOTENT:
            return (f"{name} writes while it copies: records are stored once, but can be seen before the commit.",)
        return ()

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
        )

    def open_driver(self) -> SinkDriver:
        """The sink's driver role; no request yet.

        Raises:
            ConfigError: the sink refuses its own keys.
        """
        context = self._settings(0, schedule_expired=False).sink_context()
        opened = load_role(self.resolved.connector.connector, "driver_role")
        overwrite = self.delivery_guarantee != connector_keys.EXACTLY_ONCE
        driver: SinkDriver = opened(replace(context, overwrite=overwrite, start_jvm=_start_jvm))
        return driver

    def task_settings(self, now_ms: int, *, schedule_expired: bool) -> TaskSettings:
        """What tasks get."""
        return replace(self._settings(now_ms, schedule_expired=schedule_expired), task_configs=self.task_configs)

    def _settings(self, now_ms: int, *, schedule_expired: bool) -> TaskSettings:
        return TaskSettings(
            connector=self.resolved.connector.raw,
            worker=dict(self.worker),
            aws=dict(self.spec.aws),
            run_id=self.run_id,
            now_ms=now_ms,
            flush_on_end=self.resolved.connector.flush_on_end,
            schedule_expired=schedule_expired,
        )

    def without_secrets(self) -> dict[str, str]:
        """The connector's configuration as a manifest may hold it: references as written, secret values left out.

        Converters that come from the worker are written into it: it may have others when a file is copied again.
        """
        complete = as_written(self._with_converters())
        masked = self.definition.masked(complete)
        return {key: value for key, value in complete.items() if masked.get(key) == value}

    def _with_converters(self) -> dict[str, str]:
        used = (
            (connector_keys.KEY_CONVERTER, self.resolved.connector.key_converter, self.resolved.key_converter),
            (connector_keys.VALUE_CONVERTER, self.resolved.connector.value_converter, self.resolved.value_converter),
            (connector_keys.HEADER_CONVERTER, self.resolved.connector.header_converter, self.resolved.header_converter),
        )
        complete = dict(self.resolved.connector.raw)
        for key, own, effective in used:
            if own is None:
                # Nested keys without their converter mean nothing, and must not begin to.
                complete = {name: value for name, value in complete.items() if not name.startswith(f"{key}.")}
                complete[key] = effective.plugin.name
                nested = {f"{key}.{name}": value for name, value in effective.settings.items()}
                nested.pop(f"{key}.{CONVERTER_TYPE}", None)
                complete.update(nested)
        return complete

    def with_manifest(self, manifest: Manifest) -> RunConfiguration:
        """This configuration with the layout of a manifest's run; secrets come from now, they may have been rotated.

        So does what is said about tables over its files: a metastore that has moved, or that is no longer wanted, must
        not keep the files from being committed. References of the manifest are resolved anew.

        Raises:
            ConfigError: one of them leads nowhere, or to something else than when the files were staged.
        """
        now = as_written(self._with_converters())
        secrets = {key: value for key, value in now.items() if self._is_secret(key, value)}
        limits = {connector_keys.RUN_MAX_BYTES, connector_keys.RUN_MAX_SECONDS}
        connector = {
            key: value
            for key, value in coerce_config({**_with_tables_of(now, manifest.config), **secrets}).items()
            if key not in limits and value is not None
        }
        references = self.references.values
        there = RunConfiguration.from_spec(
            replace(self.spec, connector=connector, run_id=manifest.run_id, references=references)
        )
        there._refuse_changed_references(manifest)
        return there

    def reference_marks(self) -> dict[str, str]:
        """By key of `without_secrets`: a mark of what the references in its value stand for, secrets left out.

        A mark has 32 bits: enough to see a change, too few to find the value by trying.
        """
        complete = self._with_converters()
        return {
            key: hashlib.sha256("\0".join((self.run_id, key, value)).encode()).hexdigest()[:8]
            for key, value in complete.items()
            if isinstance(value, ResolvedText) and not self._is_secret(key, str(value))
        }

    def _refuse_changed_references(self, manifest: Manifest) -> None:
        """Where the files of a manifest are is said by its configuration: it must mean what it meant then."""
        now = self.reference_marks()
        for key, mark in manifest.reference_marks.items():
            if now.get(key) != mark and not key.startswith(_TABLES):
                raise ConfigError(
                    f"Run {manifest.run_id} staged its files under {key}={manifest.config.get(key)}, and this reference"
                    " stands for something else by now, so that they cannot be found.",
                    code="config.reference_changed",
                    suggestion="Let it stand for its former value until that run is recovered, then change it.",
                    config_path=key,
                )

    def _is_secret(self, key: str, value: str) -> bool:
        """Whether a value under this key is hidden; the reference in the place of a secret counts as one."""
        return (
            HIDDEN in self.definition.masked({key: value}).values()
            or HIDDEN in self.definition.masked({key: "x"}).values()
        )


def _start_jvm(folders: Sequence[str], options: Sequence[str]) -> Jvm:
    """See `RoleContext.start_jvm`."""
    from airflow_connect.runtime.engine.hadoop_jvm import start_hadoop_jvm

    return start_hadoop_jvm(folders, options)


def _with_tables_of(now: Mapping[str, Any], staged: Mapping[str, str]) -> dict[str, Any]:
    """The configuration that staged files, with `hive.*` of now; without tables where it had none."""
    if str(staged.get(f"{_TABLES}integration")).lower() != "true":
        return dict(staged)
    kept = {key: value for key, value in staged.items() if not key.startswith(_TABLES)}
    return {**kept, **{key: value for key, value in now.items() if key.startswith(_TABLES)}}
