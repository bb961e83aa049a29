"""References to config providers in configurations, and how their values are hidden.

Source: org.apache.kafka.common.config.ConfigTransformer (Kafka 4.3) for the syntax, `${provider:[path:]key}`.
References inside a resolved value are not resolved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import quote, quote_plus

from airflow_connect.errors import ConnectError

SHORTEST_HIDDEN = 5
"""Minimum length of values that are replaced inside other text. Shorter values occur in ordinary words, and the gaps
would reveal them."""


def written_forms(text: str) -> frozenset[str]:
    """The text, and how it is written in JSON, with and without escapes of other characters than ASCII, and in URLs."""
    in_json = (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return frozenset((text, *in_json, quote(text, safe=""), quote_plus(text), quote_plus(text, safe="*")))


class Reference(NamedTuple):
    """One reference: `text` is all of it, including braces; `path` is "" if it has none."""

    text: str
    provider: str
    path: str
    key: str


class ResolvedText(str):
    """A configuration value with its references resolved; `reference` is the value as written.

    It behaves like ordinary text. Code that shows a value uses `reference`. `repr` returns only the reference, so a
    printed dictionary reveals nothing.
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
        """Only the reference."""
        return repr(self.reference)


def references_in(text: str) -> list[Reference]:
    """Every reference in `text`, in order."""
    return [reference for _, reference in _pieces(text) if reference]


def is_reference(text: str) -> bool:
    """Whether `text` is one reference and nothing else."""
    return text.startswith("${") and ":" in text and text.find("}") == len(text) - 1


def _pieces(text: str) -> Iterator[tuple[str, Reference | None]]:
    r"""The text divided after each reference: what is before it, and the reference; None after the last one.

    The same as searching for Kafka's `\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`, which takes minutes for 2,000 characters
    of `${a:` without an end. A reference holds no brace but its last one, so each part that ends with a brace has at
    most one, which begins at the first `${`.
    """
    if "${" not in text:
        yield text, None
        return
    *closed, rest = text.split("}")
    plain = ""
    for part in closed:
        before, _, inside = part.partition("${")
        provider, colon, key = inside.partition(":")
        if not colon:
            plain += part + "}"
            continue
        first, second, last = key.partition(":")
        path, key = (first, last) if second else ("", key)
        yield plain + before, Reference(part[len(before) :] + "}", provider, path, key)
        plain = ""
    yield plain + rest, None


def written(value: Any) -> Any:
    """A configuration value as written: with its references, not with their values."""
    return value.reference if isinstance(value, ResolvedText) else value


def as_written(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as written."""
    return {name: written(value) for name, value in config.items()}


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """The values of a run's references.

    Attributes:
        values: text of the reference to its value. Secret: never shown, logged or stored.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration with every known reference resolved; a value with a reference becomes a `ResolvedText`."""
        return {name: self._resolved(value) for name, value in config.items()}

    def _resolved(self, value: Any) -> Any:
        if not isinstance(value, str) or not any(r.text in self.values for r in references_in(value)):
            return value
        text = "".join(before + (self.values.get(r.text, r.text) if r else "") for before, r in _pieces(value))
        return ResolvedText(text, str(written(value)))

    def hide(self, text: str) -> str:
        """`text` with every value of at least `SHORTEST_HIDDEN` characters replaced by its reference."""
        for form, reference in self._forms():
            text = text.replace(form, reference)
        return text

    def hide_in_error(self, error: ConnectError) -> None:
        """Do the same to the message and the suggestion of an error."""
        if self.values:
            error.message, error.suggestion = self.hide(error.message), self.hide(error.suggestion)
            error.args = (error.message,)

    def shapes(self) -> list[str]:
        """Every text that `hide` replaces, longest first, for code with another way to hide secrets."""
        return [form for form, _ in self._forms()]

    @contextmanager
    def hiding_errors(self) -> Iterator[None]:
        """Our errors that leave the block do not quote a value."""
        try:
            yield
        except ConnectError as error:
            self.hide_in_error(error)
            raise

    def _forms(self) -> list[tuple[str, str]]:
        """Forms in which a value may appear, longest first: unchanged, trimmed, line by line, in JSON, in a URL."""
        found: dict[str, str] = {}
        for reference, value in self.values.items():
            # A list is shown with blanks after its commas.
            for part in (value, value.strip(), ", ".join(value.split(",")), *value.splitlines()):
                for form in written_forms(part):
                    if len(form) >= SHORTEST_HIDDEN:
                        found.setdefault(form, reference)
        return sorted(found.items(), key=lambda item: -len(item[0]))
