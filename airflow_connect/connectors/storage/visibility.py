"""Which keys of the partitioner a form shows: those that the chosen partitioner looks at.

Source: PartitionerConfig.PartitionerClassDependentsRecommender of Confluent's kafka-connect-storage-common. It hides
the time zone from scheduled rotation, which needs it; here it stays visible then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.errors import ConfigError
from airflow_connect.api.plugins import PluginKind, built_in, resolve

_PARTITIONERS = "airflow_connect.layout.partitioners"
_LOOKS_AT = {
    "Default": (),
    "Field": ("partition.field.name",),
    "Daily": ("locale", "timezone"),
    "Hourly": ("locale", "timezone"),
    "TimeBased": ("partition.duration.ms", "path.format", "locale", "timezone"),
}


@dataclass(frozen=True, slots=True)
class OfPartitioner:
    """Recommends no values; shows a key when the partitioner looks at it, or is somebody else's.

    Attributes:
        also_for: key of a number; when it is positive, the key is shown too.
    """

    also_for: str = ""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """None: any value that passes the checks will do."""
        return ()

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the key means something beside the other values."""
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
