"""What `delivery.guarantee` means: which steps make output and offsets final, and in which order.

The word of a configuration becomes a `Guarantee` once, where the configuration is checked. Sinks (the driver,
runtime/driver/sink/run.py) and sources (tasks, exactly_once/task_transaction.py) read the same object.

| | sink | source |
|---|---|---|
| `exactly_once` | manifest, publish, commit | records and offsets in one transaction |
| `at_least_once` | publish, commit | records, then offsets |
| `at_most_once` | commit, publish | offsets, then records |
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_connect.config.keys import sink as keys


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A value of `delivery.guarantee`.

    Attributes:
        name: as in the configuration and in reports.
        is_atomic: output and offsets become final together, whatever crashes.
        commits_first: offsets are final before the output. Otherwise the output comes first, or both together.
    """

    name: str
    is_atomic: bool = False
    commits_first: bool = False

    @classmethod
    def of(cls, name: str) -> Guarantee:
        """The guarantee that a checked configuration names."""
        return _BY_NAME[name]

    @property
    def may_repeat(self) -> bool:
        """Whether a crash makes the next run write records again."""
        return not self.is_atomic and not self.commits_first

    @property
    def may_lose(self) -> bool:
        """Whether a crash leaves records out."""
        return self.commits_first

    # --- sinks ----------------------------------------------------------------------------------------------------

    @property
    def writes_manifest(self) -> bool:
        """Whether a manifest names the staged files before they are published: the next run finishes what it names."""
        return self.is_atomic

    @property
    def overwrites(self) -> bool:
        """Whether publishing replaces a foreign file with the same key: a crashed run may have written it."""
        return not self.is_atomic

    # --- sources --------------------------------------------------------------------------------------------------

    @property
    def uses_transactions(self) -> bool:
        """Whether a unit of records and its offsets are one Kafka transaction of a task that can be fenced."""
        return self.is_atomic

    @property
    def stores_by_time(self) -> bool:
        """Whether offsets follow the records every `offset.flush.interval.ms`. Otherwise units are single batches."""
        return self.may_repeat


EXACTLY_ONCE = Guarantee(keys.EXACTLY_ONCE, is_atomic=True)
AT_LEAST_ONCE = Guarantee(keys.AT_LEAST_ONCE)
AT_MOST_ONCE = Guarantee(keys.AT_MOST_ONCE, commits_first=True)
_BY_NAME = {guarantee.name: guarantee for guarantee in (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE)}
