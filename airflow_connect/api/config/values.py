"""Configuration values: their types, parsing and formatting, as in Kafka Connect.

Source of every rule and message: org.apache.kafka.common.config.ConfigDef (Kafka 4.3), recorded in
tests/data/configdef.jsonl.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from airflow_connect.api.config.references import is_reference, written
from airflow_connect.errors import ConfigError
from airflow_connect.java.numbers import float64_of, integer_text, parse_float, parse_integer

HIDDEN = "[hidden]"
LONGEST_SHOWN = 200
"""Maximum number of characters of a value that a message quotes."""
LONGEST_REASON = 1500
"""Maximum length of the reason: a list of valid values may be long, and a reason may quote the value again."""

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_LIST_BLANKS = " \t\n\r\f\v"
_CHAIN_ALIAS = re.compile(r"^(transforms|predicates)\.[^.]*\.")
_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|secret|token|jaas|private\.?key|keystore\.key|truststore\.certificates"
    r"|customer\.key|access\.?key|account\.?key|api\.?key|user\.info|authorization|oauthbearer\.assertion"
    r"|(?:^|[._-])(?:pwd|pass)(?![a-z])|credentials?(?:\.json)?$|connection\.string",
    re.IGNORECASE,
)


class Type(Enum):
    """Types of configuration values; the Python value of each is in brackets.

    BOOLEAN [bool], STRING [str], INT, SHORT, LONG [int with 32, 16, 64 bits], DOUBLE [float], LIST
    [list[str]], CLASS [str, as written], PASSWORD [Password].
    """

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_EXPECTED_NUMBER = {
    Type.SHORT: "a 16-bit integer (short)",
    Type.INT: "a 32-bit integer",
    Type.LONG: "a 64-bit integer (long)",
    Type.DOUBLE: "a double",
}


class Password:
    """A secret that is never shown: `str`, `repr` and `format` return `[hidden]`; `.value` is the secret."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Keep `value`."""
        self._value = value

    @property
    def value(self) -> str:
        """The secret in clear text."""
        return self._value

    def __repr__(self) -> str:
        """`[hidden]`."""
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        """Equal secrets are equal passwords."""
        return isinstance(other, Password) and other._value == self._value

    def __hash__(self) -> int:
        """Hash of the secret."""
        return hash((Password, self._value))

    def __reduce__(self) -> tuple[type[Password], tuple[str]]:
        """Pickles the secret, because dataclasses with passwords are sent to executors."""
        return Password, (self._value,)


class InvalidValueError(Exception):
    """A value does not fit its key; `str()` is Connect's message. `ConfigDef` collects these."""


_TEXT_WITH_SECRET = re.compile(
    # The user's part of a URL; parameters of a JDBC URL; Oracle's thin:user/password@host; properties; headers.
    # A password may have any character there but a space; only `host:port/...?user=a@b` has an @ without one.
    r"://[^\s/:@]*+:[^\s/@]+@|://[^\s/:@]*+:[^\s@?;&]{1,256}+@|://[^\s/:@]*+:(?!\d{1,5}[/?;,])[^\s@]{1,256}+@"
    r"|^jdbc:.*\b(?:password|passwd|pwd|sslpassword)\s*=|^jdbc:oracle:\w++:[^@/]*/[^@]*@"
    r"|^jdbc:\w++:/?[^\s/:@]*+:[^\s@]+@"
    r"|(?:^|[;?&,])(?:[\w-]+\.)*+(?:password|passwd|pwd|secret|token|sharedaccesskey|accountkey)=[^;?&,\s]"
    r"|\bauthorization\s*+:\s*+\S|\bbearer\s++\S",
    re.IGNORECASE,
)


def invalid(name: str, value: Any, why: str = "") -> InvalidValueError:
    """`Invalid value V for configuration K: why`; V is hidden if the name suggests a secret."""
    shown = HIDDEN if is_secret_name(name) else shortened(display(value))
    return InvalidValueError(f"Invalid value {shown} for configuration {name}" + (f": {_cut(why)}" if why else ""))


def shortened(text: str) -> str:
    """At most `LONGEST_SHOWN` characters of a value, so the reason after it is easy to find."""
    return _cut(text, LONGEST_SHOWN)


def _cut(text: str, longest: int = LONGEST_REASON) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."


def is_secret_name(name: str) -> bool:
    """Whether values of a key called `name` must not be printed, based on its name only.

    The alias of a transformation does not count: `transforms.mask-password.type` is a class.
    """
    return _SECRET_NAME.search(_CHAIN_ALIAS.sub("", name)) is not None


def display(value: Any) -> str:
    """A value as Java's `String.valueOf` prints it; passwords are hidden."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(display(item) for item in value) + "]"
    return integer_text(value) if isinstance(value, int) else str(value)


def java_trim(text: str) -> str:
    """`String.trim()`: drop characters up to U+0020 at both ends, and no other white space."""
    return text.strip(_JAVA_BLANKS)


def java_double(value: float) -> str:
    """`Double.toString`: decimal in [1e-3, 1e7), else one digit before the point and `E` (1.0E10)."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" not in text:
            return text
    mantissa, exponent = _shortest_digits(abs(value))
    sign = "-" if value < 0 else ""
    return f"{sign}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"


def _shortest_digits(value: float) -> tuple[str, int]:
    """Significant digits and decimal exponent of the shortest text that reads back as `value` > 0."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return digits.rstrip("0") or "0", leading + int(exponent or 0)


def parse_type(name: str, value: Any, kind: Type, find_class: Callable[[str], Any] | None = None) -> Any:
    """The typed value of `value` for key `name`; None stays None.

    Args:
        name: key, for the message.
        value: text (trimmed as Java does, except for CLASS) or an already typed value.
        kind: type of the key.
        find_class: for CLASS: raises ConfigError if the class name is unknown.

    Raises:
        InvalidValueError: with the message of ConfigDef.parseType.
    """
    if value is None:
        return None
    if kind is Type.BOOLEAN:
        return _parse_boolean(name, value)
    if kind in (Type.INT, Type.SHORT, Type.LONG):
        return _parse_integer(name, value, kind)
    if kind is Type.DOUBLE:
        return _parse_double(name, value)
    if kind is Type.LIST:
        return _parse_list(name, value)
    if kind is Type.CLASS:
        return _parse_class(name, value, find_class)
    return _parse_text(name, value, kind)


def _parse_boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and java_trim(value).lower() in ("true", "false"):
        return java_trim(value).lower() == "true"
    raise invalid(name, value, "Expected value to be either true or false")


def _parse_text(name: str, value: Any, kind: Type) -> str | Password:
    if kind is Type.PASSWORD and isinstance(value, Password):
        return value
    if not isinstance(value, str):
        shown = HIDDEN if kind is Type.PASSWORD else value
        raise invalid(name, shown, f"Expected value to be a string, but it was a {_java_class(value)}")
    if kind is not Type.PASSWORD:
        return java_trim(value)
    if java_trim(value) == HIDDEN:
        # A configuration that was shown and is used again. Kafka Connect takes the word for the secret.
        raise invalid(name, HIDDEN, "It stands for a secret that was not shown. Write the secret, or a reference to it")
    return Password(java_trim(value))


def _parse_integer(name: str, value: Any, kind: Type) -> int:
    bits = _BITS[kind]
    if isinstance(value, str):
        try:
            return parse_integer(java_trim(value), bits)
        except ValueError:
            raise invalid(name, value, f"Not a number of type {kind.value}") from None
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    raise _wrong_type(name, value, kind)


def _parse_double(name: str, value: Any) -> float:
    if isinstance(value, str):
        try:
            return parse_float(value, 64)
        except ValueError:
            raise invalid(name, value, "Not a number of type DOUBLE") from None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float64_of(value)
    raise _wrong_type(name, value, Type.DOUBLE)


def _parse_list(name: str, value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if not isinstance(value, str):
        raise invalid(name, value, "Expected a comma separated list.")
    text = java_trim(value)
    return [item.strip(_LIST_BLANKS) for item in text.split(",")] if text else []


def _parse_class(name: str, value: Any, find_class: Callable[[str], Any] | None) -> str:
    if not isinstance(value, str):
        raise invalid(name, value, "Expected a Class instance or class name.")
    if find_class is not None:
        try:
            find_class(value)
        except ConfigError:
            shown = HIDDEN if is_secret_name(name) else shortened(value)
            raise invalid(name, value, f"Class {shown} could not be found.") from None
    return value


def _wrong_type(name: str, value: Any, kind: Type) -> InvalidValueError:
    return invalid(name, value, f"Expected value to be {_EXPECTED_NUMBER[kind]}, but it was a {_java_class(value)}")


def _java_class(value: Any) -> str:
    """Name of the Java class that Connect would have seen in place of a Python value."""
    if isinstance(value, bool):
        return "java.lang.Boolean"
    if isinstance(value, int):
        return "java.lang.Integer" if -(1 << 31) <= value < 1 << 31 else "java.lang.Long"
    if isinstance(value, float):
        return "java.lang.Double"
    if isinstance(value, str):
        return "java.lang.String"
    return "java.util.List" if isinstance(value, (list, tuple)) else "java.util.Map"


def convert_to_string(value: Any, kind: Type) -> str | None:
    """The text that parses back to `value` (ConfigDef.convertToString); a password becomes `[hidden]`."""
    if value is None:
        return None
    if kind is Type.LIST:
        return ",".join(value)
    return HIDDEN if kind is Type.PASSWORD else display(value)


def coerce_json(name: str, value: Any) -> str | None:
    """A JSON (or Python) scalar as the text that Jackson passes to Connect: 1.50 is "1.5", true is "true".

    Raises:
        ConfigError: the value is a list or an object.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Password):
        return value.value
    if isinstance(value, (bool, int, float)):
        return display(value)
    kind = "an array" if isinstance(value, (list, tuple)) else "an object" if isinstance(value, Mapping) else "not text"
    raise ConfigError(
        f"The value of configuration {name} is {kind}, but configuration values are text, numbers or booleans.",
        suggestion=f"Write lists as comma separated text, for example {json.dumps({name: 'a,b'})}.",
        config_path=name,
    )


def coerce_config(raw: Mapping[str, Any]) -> dict[str, str | None]:
    """A configuration map with `coerce_json` applied to every value."""
    return {str(name): coerce_json(str(name), value) for name, value in raw.items()}


def masked(raw: Mapping[str, Any], secret_names: Iterable[str] = ()) -> dict[str, Any]:
    """A copy that can be shown: values of secret names, and text with a password or a login in it, are `[hidden]`.

    Secret names are `secret_names` and those that suggest a secret. References to a config provider,
    `${provider:path:key}`, are not secrets and stay, unless there is other text around them; resolved ones are shown
    as references again.
    """
    known = frozenset(secret_names)
    return {
        name: HIDDEN if _is_secret(name, value, known) and not _is_reference(value) else value
        for name, value in ((name, written(value)) for name, value in raw.items())
    }


def _is_secret(name: str, value: Any, known: frozenset[str]) -> bool:
    return name in known or is_secret_name(name) or _TEXT_WITH_SECRET.search(str(value)) is not None


def _is_reference(value: Any) -> bool:
    return value is None or (isinstance(value, str) and is_reference(value))
