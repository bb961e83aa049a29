"""What decides where rows are sent, and as what, besides the columns of their table, for `bulk.changed.only`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from airflow_connect.api.source import SourceOffset
from airflow_connect.connectors.jdbc.source.read.identities import hashed
from airflow_connect.registry.settings import REACH

FORM, WORKER = "form", "worker_form"
_FORMING = frozenset({
    "topic.prefix", "db.timezone", "values.out.of.range", "timestamp.granularity", "transforms", "key.converter",
    "value.converter",
})  # fmt: skip
_FORMING_GROUPS = ("transforms.", "predicates.", "key.converter.", "value.converter.")
"""Of columns, the hashes of ranges are made."""


class Form(NamedTuple):
    """Two short hashes: after a change of one, no row was sent so.

    Attributes:
        own: of what the connector's configuration decides.
        worker: of the converters that the worker's configuration decides.
    """

    own: str
    worker: str

    @classmethod
    def of(cls, config: Mapping[str, str], zero_dates: str, converters: Mapping[str, str]) -> Form:
        """The form of a run.

        Args:
            config: of the task.
            zero_dates: what its URL says of them; see `DatabaseAddress`.
            converters: of the worker; see `SourceTaskContext.worker_converters`.
        """
        found = _forming(config)
        if zero_dates != "exception":  # By default, the hash is that of releases that did not ask.
            found.append(("zeroDateTimeBehavior", zero_dates))
        return cls(hashed(repr(found)), hashed(repr(_forming(converters))))

    def offset(self) -> SourceOffset:
        """What an offset keeps of it."""
        return {FORM: self.own, WORKER: self.worker}

    def is_that_of(self, offset: SourceOffset) -> bool:
        """Whether rows were sent in this form; what the offset does not tell counts as unchanged."""
        return self == (offset.get(FORM, self.own), offset.get(WORKER, self.worker))


def _forming(config: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in config.items() if key in _FORMING or _is_of_group(key))


def _is_of_group(key: str) -> bool:
    """Whether it is a setting of a transformation or a converter: not one such as the password of a registry."""
    group, _, rest = key.partition("converter.")
    return key.startswith(_FORMING_GROUPS) and not (group in ("key.", "value.") and rest.startswith(REACH))
