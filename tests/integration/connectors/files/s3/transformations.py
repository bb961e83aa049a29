"""Transformations of a third party, for tests."""

from __future__ import annotations

from typing import ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.transform import Predicate, Transformation


class Doubling(Transformation):
    """Multiplies a number; counts how often it is opened and closed."""

    config_def = ConfigDef().define(ConfigKey("times", Type.INT, 2, "Factor."))
    configured: ClassVar[list[int]] = []
    closed: ClassVar[list[int]] = []

    def configure(self, config):
        self.times = self.config_def.parse(config)["times"]
        self.configured.append(self.times)

    def apply(self, record):
        return record.changed(value={"n": record.value["n"] * self.times})

    def close(self):
        self.closed.append(self.times)


class Misplacing(Transformation):
    """Touches what only Kafka may say."""

    def apply(self, record):
        return record.changed(offset=record.offset + 1)


class ByLetter(Transformation):
    """Names topics after the record's key; nobody can know them before."""

    def apply(self, record):
        return record.changed(topic=f"letter-{record.key[0]}")


class IsOdd(Predicate):
    """Holds for odd numbers."""

    def test(self, record):
        return record.value["n"] % 2 == 1
