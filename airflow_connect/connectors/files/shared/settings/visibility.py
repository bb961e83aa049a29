"""Which keys of the partitioner a form shows: those that the selected partitioner uses.

Source: PartitionerConfig.PartitionerClassDependentsRecommender of Confluent's kafka-connect-storage-common. It hides
the time zone even if scheduled rotation needs it; here the key stays visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.config.plugins import PluginKind, built_in, resolve
from airflow_connect.errors import ConfigError

_PARTITIONERS = "airflow_connect.layout.partitioners"
_TIME_BASED = {f"{_PARTITIONERS}:{name}Partitioner" for name in ("TimeBased", "Daily", "Hourly")}
_LOOKS_AT = {
    "Default": (),
    "Field": ("partition.field.name",),
    "Daily": ("locale", "timezone"),
    "Hourly": ("locale", "timezone"),
    "TimeBased": ("partition.duration.ms", "path.format", "locale", "timezone"),
}


@dataclass(frozen=True, slots=True)
class OfPartitioner:
    """Recommends no values; shows a key if the partitioner uses it, or is a third-party class.

    Attributes:
        also_for: key of a number; if it is positive, the key is shown too.
    """

    also_for: str = ""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """None: any valid value is fine."""
        return ()

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the key has an effect, given the other values."""
        if self.also_for and (parsed.get(self.also_for) or 0) > 0:
            return True
        try:
            path = resolve(PluginKind.PARTITIONER, parsed.get("partitioner.class") or "").path
        except ConfigError:
            return True
        if path not in built_in(PluginKind.PARTITIONER).values():
            return True
        kind = path.removeprefix(f"{_PARTITIONERS}:").removesuffix("Partitioner")
        return name in _LOOKS_AT[kind]


def is_time_based(partitioner: str) -> bool:
    """Whether a partitioner class name means one of the built-in time based partitioners."""
    return resolve(PluginKind.PARTITIONER, partitioner).path in _TIME_BASED
