"""Secrets of a configuration: which values they are, and how to keep them out of logs and error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.references import ResolvedReferences, is_reference, written_forms
from airflow_connect.api.config.values import HIDDEN, is_secret_name

if TYPE_CHECKING:
    from airflow_connect.errors import ConnectError

# A value may be a megabyte of one word: each pattern begins at the first character of a word only, and reads it once.
_URL_PASSWORD = re.compile(r"(?<=[\w+.-])://[^\s/:@]*+:([^\s/@]+)@")
_JAAS_VALUE = re.compile(
    r"""(?<!\w)(?=\w*?(?:password|secret|token))\w++\s*+=\s*+(?:"([^"]+)"|'([^']+)'|([^\s;"']+))""", re.IGNORECASE
)
_PARAMETER = re.compile(r"(?:^|[;?&])([\w.-]+)=([^;&\s]+)")
"""Parameters of a URL: Spark Connect takes its token as one. Lists of properties look the same."""
_LISTED = re.compile(r",\s*+([\w.-]+)=([^;&,\s]+)")
_HEADER = re.compile(r"\bauthorization\s*+:\s*+(?:(?:bearer|basic|apikey|token)\s++)?+([^\s,]+)", re.IGNORECASE)
_JAVA_OPTION = re.compile(r"""(?<![\w.-])(?=[\w.-]*?-D)([\w.-]++)=("[^"]*"|'[^']*'|\S+)""")
# Masking shorter values would damage every line of a log. Airflow has the same limit.
MIN_SECRET_LENGTH = 5


def secret_values(*configs: Mapping[str, Any], secret_names: Iterable[str] = ()) -> list[str]:
    """Every literal secret in some configurations, longest first. References `${provider:...}` are none.

    Args:
        configs: connector and worker configurations, connection extras; values may be nested.
        secret_names: keys of type PASSWORD, in addition to those with names that suggest a secret.
    """
    names = frozenset(secret_names)
    found = {secret for config in configs for key, value in config.items() for secret in _secrets(key, value, names)}
    return sorted(found, key=lambda secret: (-len(secret), secret))


def _secrets(key: str, value: Any, names: frozenset[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner_key, inner in value.items():
            yield from _secrets(str(inner_key), inner, names)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _secrets(key, inner, names)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if key in names or is_secret_name(key):
            yield str(value)
    elif isinstance(value, str):
        if (key in names or is_secret_name(key)) and not is_reference(value):
            yield value
            yield from (part for groups in _JAAS_VALUE.findall(value) for part in groups if part)
        named = [*_PARAMETER.findall(value), *_LISTED.findall(value), *_JAVA_OPTION.findall(value)]
        inside = [text for name, text in named if is_secret_name(name)]
        inside += [*_URL_PASSWORD.findall(value), *_HEADER.findall(value)]
        yield from (text.strip("\"'") for text in inside if not is_reference(text))


class Redactor:
    """Replaces known secrets in text."""

    def __init__(self, secrets: Iterable[str], references: ResolvedReferences | None = None) -> None:
        """Keep the values that are long enough to be distinguished from ordinary text.

        Args:
            secrets: replaced by `[hidden]`, also where they are written as in JSON or in a URL.
            references: their values are replaced by the references themselves.
        """
        forms = {form for secret in secrets if len(secret) >= MIN_SECRET_LENGTH for form in written_forms(secret)}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._references = references or ResolvedReferences()

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        text = self._references.hide(text)
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def hide_in_error(self, error: ConnectError) -> None:
        """Do the same to the message and the suggestion of an error."""
        error.message, error.suggestion = self(error.message), self(error.suggestion)
        error.args = (error.message,)
