"""Everything the driver takes from a run's two configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api import connector_keys
from airflow_connect.api.config_values import coerce_config
from airflow_connect.api.connector_config import CONVERTER_TYPE
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.resolved_config import ResolvedConfig, connector_definition, load_connector_config
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import Policy
from airflow_connect.runtime.roles import load_role
from airflow_connect.runtime.settings import TaskSettings

if TYPE_CHECKING:
    from airflow_connect.api.config import ConfigDef
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.runtime.spec import RunSpec
    from airflow_connect.stores.leftovers import LeftoverPattern
    from airflow_connect.stores.store import Publisher


class SinkDriver(Protocol):
    """Driver role of a sink that stages (`driver_role` of its connector class)."""

    @property
    def store_name(self) -> str:
        """Where files go, e.g. `s3://bucket`."""

    @property
    def counted_role(self) -> str:
        """Role of the files that hold one entry per written record: `value`, or `key` where null values are written."""

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How files look that a run over `ranges` stages."""

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Whether a tick of `rotate.schedule.interval.ms` lies in `(last_run_ms, now_ms]`."""

    def publisher(self) -> Publisher:
        """The store's publisher; no request yet."""


@dataclass(frozen=True)
class RunConfiguration:
    """A run's configuration, checked.

    Attributes:
        spec: what was asked for.
        resolved: connector and worker together.
        definition: every key of this kind of connector.
    """

    spec: RunSpec
    resolved: ResolvedConfig
    definition: ConfigDef

    @classmethod
    def from_spec(cls, spec: RunSpec) -> RunConfiguration:
        """Check and type both configurations.

        Raises:
            ConfigError: names every wrong key.
        """
        definition = connector_definition(spec.connector)
        resolved = load_connector_config(spec.connector, spec.worker, definition)
        configuration = cls(spec, resolved, definition)
        configuration.open_driver()
        return configuration

    @classmethod
    def findings(cls, spec: RunSpec) -> list[dict[str, Any]]:
        """Every finding, offline: `key`, `message`, `level` (`error`, `ignored` or `unknown`)."""
        found: list[dict[str, Any]] = []
        try:
            definition = connector_definition(spec.connector)
            for value in definition.validate(spec.connector):
                found += [{"key": value.name, "message": e, "level": "error"} for e in value.errors]
            if not found:
                found += cls.from_spec(spec)._remarks()
        except ConfigError as error:
            found.append({"key": error.config_path, "message": str(error), "level": "error"})
        return found

    def _remarks(self) -> list[dict[str, Any]]:
        remarks = []
        for config in (self.resolved.connector, self.resolved.worker):
            remarks += [{"key": k.name, "message": k.reason, "level": "ignored"} for k in config.ignored]
            for unknown in config.unknown:
                hint = f" Did you mean {unknown.nearest}?" if unknown.nearest else ""
                remarks.append({"key": unknown.name, "message": f"Unknown key.{hint}", "level": "unknown"})
        return remarks

    @property
    def name(self) -> str:
        """Connector name."""
        return self.resolved.connector.name

    @property
    def run_id(self) -> str:
        """Identity of the run."""
        return self.spec.run_id

    @property
    def tasks_max(self) -> int:
        """`tasks.max`."""
        return self.resolved.connector.tasks_max

    @property
    def delivery_guarantee(self) -> str:
        """`delivery.guarantee`."""
        return self.resolved.connector.delivery_guarantee

    @property
    def worker_spark(self) -> Mapping[str, str]:
        """`spark.*` of the worker."""
        return self.resolved.worker.spark

    @property
    def ignored_keys(self) -> list[str]:
        """Names of given keys that have no meaning here."""
        return [k.name for config in (self.resolved.connector, self.resolved.worker) for k in config.ignored]

    @property
    def policy(self) -> Policy:
        """What decides about offsets."""
        connector = self.resolved.connector
        return Policy(
            auto_offset_reset=self.resolved.consumer.get("auto.offset.reset", "earliest"),
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
        context = self.task_settings(0, schedule_expired=False).sink_context()
        opened = load_role(self.resolved.connector.connector, "driver_role")
        driver: SinkDriver = opened(replace(context, overwrite=self.delivery_guarantee != "exactly_once"))
        return driver

    def task_settings(self, now_ms: int, *, schedule_expired: bool) -> TaskSettings:
        """What tasks get."""
        return TaskSettings(
            connector=self.resolved.connector.raw,
            worker=dict(self.spec.worker),
            aws=dict(self.spec.aws),
            run_id=self.run_id,
            now_ms=now_ms,
            flush_on_end=self.resolved.connector.flush_on_end,
            schedule_expired=schedule_expired,
        )

    def without_secrets(self) -> dict[str, str]:
        """The connector's configuration as a manifest may hold it: secret values are left out.

        Converters that come from the worker are written into it: it may have others when a file is copied again.
        """
        complete = self._with_converters()
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
        """This configuration with the layout of a manifest's run; secrets come from now, they may have been rotated."""
        kept = set(self.without_secrets())
        secrets = {key: value for key, value in self.resolved.connector.raw.items() if key not in kept}
        connector = {**manifest.config, **secrets}
        limits = {connector_keys.RUN_MAX_BYTES, connector_keys.RUN_MAX_SECONDS}
        connector = {key: value for key, value in coerce_config(connector).items() if key not in limits and value}
        return RunConfiguration.from_spec(replace(self.spec, connector=connector, run_id=manifest.run_id))
