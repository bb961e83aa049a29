"""`response.http.headers.config`: headers of every answer (KIP-577)."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import MutableMapping, Sequence
from email.utils import formatdate
from typing import Any, NamedTuple

from airflow_connect.control.rest.paths import Asgi, Scope
from airflow_connect.errors import ConfigError

KEY = "response.http.headers.config"
_RULE = re.compile(r"(setDate|addDate|set|add)\s+([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*([\x20-\x7e]+)")


class HeaderRule(NamedTuple):
    """`action name: value`.

    Attributes:
        replaces: `set` and `setDate`: other values of the header are removed.
        name: in lower case.
        value: text; of a date, milliseconds from the time of the answer.
        is_date: whether it is one.
    """

    replaces: bool
    name: str
    value: str
    is_date: bool

    def text(self) -> str:
        """The value of an answer now."""
        return formatdate(time.time() + int(self.value) / 1000, usegmt=True) if self.is_date else self.value


def rules_of(value: str) -> tuple[HeaderRule, ...]:
    """The rules of the key; one that contains a comma stands in double quotes.

    Raises:
        ConfigError: one of them is none.
    """
    return tuple(_rule(part.strip()) for part in next(csv.reader([value], skipinitialspace=True), []) if part.strip())


def _rule(text: str) -> HeaderRule:
    found = _RULE.fullmatch(text)
    is_date = found is not None and found[1].endswith("Date")
    if found is None or (is_date and not re.fullmatch(r"-?\d{1,15}", found[3])):
        raise ConfigError(
            f"{KEY} has {text!r}, which is no rule.",
            config_path=KEY,
            suggestion="Write ACTION NAME: VALUE, with the action set, add, setDate or addDate. A date is a number of"
            " milliseconds from now. A rule that contains a comma stands in double quotes.",
        )
    return HeaderRule(found[1].startswith("set"), found[2].lower(), found[3].strip(), is_date)


class ResponseHeaders:
    """Middleware: adds the headers."""

    def __init__(self, app: Asgi, rules: Sequence[HeaderRule]) -> None:
        """`app`: what follows."""
        self._app = app
        self._rules = rules
        self._replaced = {rule.name.encode() for rule in rules if rule.replaces}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass on, and change the head of the answer."""

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in self._replaced]
                own = [(rule.name.encode(), rule.text().encode()) for rule in self._rules]
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
