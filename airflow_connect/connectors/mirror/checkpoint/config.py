"""Typed configuration of the checkpoint connector."""

from __future__ import annotations

from functools import cached_property

from airflow_connect.connectors.mirror.checkpoint.keys import CheckpointKeys
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection


class CheckpointConfig(CheckpointKeys):
    """Everything that the checkpoint connector takes from its configuration."""

    @property
    def has_work(self) -> bool:
        """Whether it is enabled, and there is something to do."""
        return self.enabled and (self.emits or self.syncs_groups)

    @cached_property
    def selection(self) -> TopicSelection:
        """Topics whose offsets are translated."""
        return self._selected(self.policy, heartbeats=False)

    @cached_property
    def include(self) -> Patterns:
        """Groups that are translated, unless they are excluded."""
        return Patterns(self.groups)

    @cached_property
    def _exclude(self) -> Patterns:
        return self._or_old_name(CheckpointKeys.groups_exclude, CheckpointKeys.groups_blacklist)

    def takes_group(self, group: str) -> bool:
        """Whether a group is translated."""
        return group in self.include and group not in self._exclude
