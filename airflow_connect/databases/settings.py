"""The typed values of the keys in `keys.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any

from airflow_connect.databases import keys
from airflow_connect.databases.urls import DatabaseAddress, parse_url


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach a database.

    Attributes:
        address: where it is; holds secrets.
        attempts: how often to try to connect, > 0.
        backoff_ms: milliseconds between two attempts.
        quotes: whether names are quoted in statements.
        zone: time zone of values without one.
        isolation: isolation level by SQLAlchemy's name, or "" for the database's default.
    """

    address: DatabaseAddress = field(repr=False)
    attempts: int
    backoff_ms: int
    quotes: bool
    zone: tzinfo
    isolation: str = ""

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any], raw: Mapping[str, Any], isolation: str = "") -> ConnectionSettings:
        """From parsed keys.

        Args:
            parsed: values of at least the keys of `keys.connection_keys()`.
            raw: the whole configuration: the other `connection.*` keys are parameters of the driver.
            isolation: see the attribute.

        Raises:
            ConfigError: the address or a parameter is not valid.
            MissingPackageError: the driver is not installed.
        """
        password = parsed[keys.PASSWORD]
        address = parse_url(
            parsed[keys.URL],
            parsed[keys.USER],
            None if password is None else password.value,
            keys.properties_of(raw, keys.connection_keys().keys),
        )
        return cls(
            address=address,
            attempts=parsed[keys.ATTEMPTS],
            backoff_ms=parsed[keys.BACKOFF_MS],
            quotes=keys.quotes_of(parsed, raw),
            zone=zone_of(parsed[keys.DB_TIMEZONE]),
            isolation=isolation,
        )


def zone_of(name: str) -> tzinfo:
    """The time zone with Java's name `name`.

    Raises:
        ConfigError: there is none.
    """
    from airflow_connect.layout.time.time_zones import Zone

    zone = Zone.of(name, keys.DB_TIMEZONE)
    if zone.tzinfo is not None:
        return zone.tzinfo
    offset_ms = zone.offset_ms(0)
    return timezone(timedelta(milliseconds=offset_ms)) if offset_ms else UTC
