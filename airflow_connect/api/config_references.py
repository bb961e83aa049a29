"""References to config providers inside configurations, and how what they stand for is kept from being shown.

Source: org.apache.kafka.common.config.ConfigTransformer (Kafka 4.3) for the syntax, `${provider:[path:]key}`. What a
reference stands for is not looked into again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from airflow_connect.api.errors import ConnectError

_REFERENCE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
SHORTEST_HIDDEN = 5
"""Characters from which a value is replaced inside other text. Below that every sentence would get holes, and a hole
would tell what was there."""


class Reference(NamedTuple):
    """One reference: `text` is the whole of it, braces included; `path` is "" when it has none."""

    text: str
    provider: str
    path: str
    key: str


class ResolvedText(str):
    """A configuration value with its references replaced; `reference` is the value as it was written.

    It is ordinary text for everything that works with it. Code that is going to show a value asks for `reference`,
    and `repr` gives nothing else, so that a printed dictionary tells nothing.
    """

    reference: str

    def __new__(cls, text: str, reference: str) -> Self:
        """Both texts."""
        made = super().__new__(cls, text)
        made.reference = reference
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """For pickling."""
        return str(self), self.reference

    def __repr__(self) -> str:
        """The reference only."""
        return repr(self.reference)


def references_in(text: str) -> list[Reference]:
    """Every reference in `text`, in order."""
    if "${" not in text:
        return []
    return [Reference(m.group(0), m.group(1), m.group(3) or "", m.group(4)) for m in _REFERENCE.finditer(text)]


def written(value: Any) -> Any:
    """A configuration value as it was written: with its references, not with what they stand for."""
    return value.reference if isinstance(value, ResolvedText) else value


def as_written(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as it was written."""
    return {name: written(value) for name, value in config.items()}


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """What the references of a run stand for.

    Attributes:
        values: text of the reference to its value. Secret: never shown, logged or stored.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration with every known reference replaced; a value that has one becomes a `ResolvedText`."""
        return {name: self._resolved(value) for name, value in config.items()}

    def _resolved(self, value: Any) -> Any:
        if not isinstance(value, str) or not any(r.text in self.values for r in references_in(value)):
            return value
        text = _REFERENCE.sub(lambda m: self.values.get(m.group(0), m.group(0)), value)
        return ResolvedText(text, str(written(value)))

    def hide(self, text: str) -> str:
        """`text` with the reference in the place of every value of at least `SHORTEST_HIDDEN` characters."""
        for form, reference in self._forms():
            text = text.replace(form, reference)
        return text

    def hide_in_error(self, error: ConnectError) -> None:
        """Do the same to the message and the suggestion of an error."""
        if self.values:
            error.message, error.suggestion = self.hide(error.message), self.hide(error.suggestion)
            error.args = (error.message,)

    def shapes(self) -> list[str]:
        """Every text that `hide` replaces, longest first, for what hides secrets in its own way."""
        return [form for form, _ in self._forms()]

    @contextmanager
    def hiding_errors(self) -> Iterator[None]:
        """Errors of ours that leave the block quote no value."""
        try:
            yield
        except ConnectError as error:
            self.hide_in_error(error)
            raise

    def _forms(self) -> list[tuple[str, str]]:
        """Shapes in which a value may appear, longest first: as it is, trimmed, line by line, in JSON, in a URL."""
        found: dict[str, str] = {}
        for reference, value in self.values.items():
            # A list is shown with blanks after its commas.
            for part in (value, value.strip(), ", ".join(value.split(",")), *value.splitlines()):
                for form in (part, json.dumps(part)[1:-1], quote(part, safe="")):
                    if len(form) >= SHORTEST_HIDDEN:
                        found.setdefault(form, reference)
        return sorted(found.items(), key=lambda item: -len(item[0]))
