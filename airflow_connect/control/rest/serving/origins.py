"""Web pages of other hosts that may use the API: `access.control.allow.origin` and `access.control.allow.methods`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_connect.errors import ConfigError

ORIGIN, METHODS = "access.control.allow.origin", "access.control.allow.methods"
DEFAULT_METHODS = ("GET", "POST", "HEAD")
"""Of Kafka Connect's server."""
HEADERS = ("X-Requested-With", "Content-Type", "Accept", "Origin")
_KNOWN = frozenset({*DEFAULT_METHODS, "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Origins:
    """Which pages are let in.

    Attributes:
        patterns: origins, in which `*` stands for any text; (): none.
        methods: what their requests may do.
    """

    patterns: tuple[str, ...] = ()
    methods: tuple[str, ...] = DEFAULT_METHODS

    @classmethod
    def from_worker(cls, text: Mapping[str, str]) -> Origins:
        """Read both keys.

        Raises:
            ConfigError: there is no such method, or methods without origins.
        """
        methods = tuple(part.strip().upper() for part in text.get(METHODS, "").split(",") if part.strip())
        patterns = tuple(part.strip() for part in text.get(ORIGIN, "").split(",") if part.strip())
        unknown = [method for method in methods if method not in _KNOWN]
        if unknown:
            raise ConfigError(
                f"{METHODS} names {unknown[0]}.", config_path=METHODS, suggestion=f"Known: {', '.join(sorted(_KNOWN))}."
            )
        return cls(patterns, methods or DEFAULT_METHODS)

    def expression(self) -> str:
        """A regular expression of all allowed origins."""
        return "|".join(".*".join(re.escape(part) for part in pattern.split("*")) for pattern in self.patterns)

    def allow(self, origin: str) -> bool:
        """Whether a page of this origin is let in."""
        return bool(self.patterns) and re.fullmatch(self.expression(), origin) is not None
