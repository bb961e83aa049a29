"""Log levels of this process, by the names of Log4j's levels (KIP-495, KIP-976)."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from airflow_connect.control.herder.refusals import BAD_REQUEST, NOT_FOUND, RefusedError

ROOT = "root"
_LEVELS = {
    "ALL": logging.NOTSET + 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_lock = threading.Lock()


class Loggers:
    """The loggers of this process; remembers when it changed one."""

    def __init__(self) -> None:
        """Nothing was changed yet."""
        self._changed: dict[str, int] = {}

    def every(self) -> dict[str, dict[str, Any]]:
        """LoggerLevel of every logger that exists, by name."""
        return {name: self._shown(name, _logger(name)) for name in [ROOT, *sorted(_names())]}

    def one(self, name: str) -> dict[str, Any]:
        """LoggerLevel.

        Raises:
            RefusedError: there is no such logger.
        """
        known = ROOT if name.lower() == ROOT else name
        if known != ROOT and known not in _names():
            raise RefusedError(f"Logger {name} not found.", NOT_FOUND)
        return self._shown(known, _logger(known))

    def set(self, namespace: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; returns those that changed, by name.

        Args:
            level: as `checked_level` returns it.
        """
        with _lock:
            everything = namespace.lower() == ROOT
            below = [name for name in _names() if everything or name.startswith(f"{namespace}.")]
            own = ROOT if everything else namespace
            before = {name: _level_name(_logger(name)) for name in sorted({own, *below})}
            for name in before:
                _logger(name).setLevel(_LEVELS[level])
            changed = [name for name, old in before.items() if old != level]
            self._changed.update(dict.fromkeys(changed, time.time_ns() // 1_000_000))
            return changed

    def _shown(self, name: str, logger: logging.Logger) -> dict[str, Any]:
        return {"level": _level_name(logger), "last_modified": self._changed.get(name)}


def checked_level(body: Any) -> str:
    """The level of a request's body.

    Raises:
        RefusedError: it has none, or an unknown one.
    """
    level = body.get("level") if isinstance(body, dict) else None
    if level is None:
        raise RefusedError("Desired 'level' parameter was not specified in request.", BAD_REQUEST)
    if str(level).upper() not in _LEVELS:
        raise RefusedError(f"invalid log level '{level}'.", NOT_FOUND)
    return str(level).upper()


def _names() -> set[str]:
    found = list(logging.root.manager.loggerDict.items())
    return {name for name, logger in found if isinstance(logger, logging.Logger)}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level_name(logger: logging.Logger) -> str:
    number = logger.getEffectiveLevel()
    return next((name for name, least in reversed(_LEVELS.items()) if number >= least), "ALL")
