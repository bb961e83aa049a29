"""Validators of configuration values, with the texts of Kafka Connect's own.

A validator has `check(name, value)`, which raises InvalidValueError, and `str()`, which describes the valid values. As
in Connect, a validator gets the parsed value, or None if parsing failed.
Source: org.apache.kafka.common.config.ConfigDef and its nested validators (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from airflow_connect.api.config.values import InvalidValueError, display, invalid

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]{2,45}\]")


class Validator(Protocol):
    """The interface of a validator; `str(validator)` describes the valid values."""

    def check(self, name: str, value: Any) -> None:
        """Raise InvalidValueError if `value` is not valid for key `name`."""


class Range:
    """Numbers from `minimum` to `maximum`, both inclusive; None: no bound."""

    def __init__(self, minimum: float | None = None, maximum: float | None = None) -> None:
        """Keep the bounds."""
        self.minimum, self.maximum = minimum, maximum

    def check(self, name: str, value: Any) -> None:
        """Null is invalid."""
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        if self.minimum is not None and value < self.minimum:
            raise invalid(name, value, f"Value must be at least {display(self.minimum)}")
        if self.maximum is not None and value > self.maximum:
            raise invalid(name, value, f"Value must be no more than {display(self.maximum)}")

    def __str__(self) -> str:
        """`[1,...,10]`, `[1,...]`, `[...,10]` or `[...]`."""
        low = f"{display(self.minimum)}," if self.minimum is not None else ""
        high = f",{display(self.maximum)}" if self.maximum is not None else ""
        return f"[{low}...{high}]"


class ValidString:
    """One of the given strings; null is invalid."""

    def __init__(self, *values: str) -> None:
        """Keep the values, in order."""
        self.values = values

    def check(self, name: str, value: Any) -> None:
        """Exact match."""
        if value not in self.values:
            raise invalid(name, value, f"String must be one of: {', '.join(self.values)}")

    def __str__(self) -> str:
        """`[a, b]`."""
        return f"[{', '.join(self.values)}]"


class CaseInsensitiveValidString:
    """One of the given strings, case-insensitive; null is invalid."""

    def __init__(self, *values: str) -> None:
        """Keep the values in upper case."""
        self.values = tuple(v.upper() for v in values)

    def check(self, name: str, value: Any) -> None:
        """Match after upper-casing."""
        if value is None or value.upper() not in self.values:
            raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(self.values)}")

    def __str__(self) -> str:
        """`(case insensitive) [A, B]`."""
        return f"(case insensitive) [{', '.join(self.values)}]"


class EnumString:
    """One of the given lower-case strings, case-insensitive, as Confluent checks enums; null is invalid."""

    def __init__(self, *values: str) -> None:
        """Keep the values, in order."""
        self.values = values

    def check(self, name: str, value: Any) -> None:
        """Match after lower-casing."""
        if value is None or value.lower() not in self.values:
            raise invalid(name, value, f"String must be one of: {', '.join(self.values)}")

    def __str__(self) -> str:
        """`[a, b]`."""
        return f"[{', '.join(self.values)}]"


class OneOf:
    """One of the given strings, with the messages of Confluent's sinks; null is valid if `nullable`."""

    def __init__(self, *values: str, nullable: bool = False) -> None:
        """Keep the values, in order."""
        self.values, self.nullable = values, nullable

    def check(self, name: str, value: Any) -> None:
        """Exact match."""
        if value is None and self.nullable:
            return
        if value not in self.values:
            raise invalid(name, value, f"Value must be one of: {', '.join(self.values)}")

    def __str__(self) -> str:
        """`[a, b]`."""
        return f"[{', '.join(self.values)}]"


class ValidList:
    """A list without duplicates and blanks; if there are `values`, its members are among them.

    Source: ConfigDef.ValidList of Kafka 4.1 and later.
    """

    def __init__(self, *values: str, empty_allowed: bool = True, null_allowed: bool = False) -> None:
        """Keep what is allowed."""
        self.values, self.empty_allowed, self.null_allowed = values, empty_allowed, null_allowed

    def check(self, name: str, value: Any) -> None:
        """Checks for null, empty, duplicate and blank, in this order."""
        if value is None:
            if self.null_allowed:
                return
            raise InvalidValueError(f"Configuration '{name}' values must not be null.")
        if not value and not self.empty_allowed:
            valid = f"[{', '.join(self.values)}]" if self.values else "any non-empty value"
            raise InvalidValueError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) != len(value):
            raise InvalidValueError(f"Configuration '{name}' values must not be duplicated.")
        for item in value:
            if item == "":
                raise InvalidValueError(f"Configuration '{name}' values must not be empty.")
            if self.values:
                ValidString(*self.values).check(name, item)

    def __str__(self) -> str:
        """`[a, b]`, or nothing if any value is valid."""
        return f"[{', '.join(self.values)}]" if self.values else ""


class NonNull:
    """Anything but null."""

    def check(self, name: str, value: Any) -> None:
        """Null is invalid."""
        if value is None:
            raise invalid(name, None, "entry must be non null")

    def __str__(self) -> str:
        """Connect's wording."""
        return "non-null string"


class NonEmptyString:
    """Null or a string with at least one character."""

    def check(self, name: str, value: Any) -> None:
        """Null is valid: a missing value is reported by `ConfigDef` itself."""
        if value is not None and value == "":
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        """Connect's wording."""
        return "non-empty string"


class NonEmptyStringWithoutControlChars:
    """Null or a non-empty string without ISO control characters (U+0000-U+001F, U+007F-U+009F)."""

    def check(self, name: str, value: Any) -> None:
        """Names the offending code points."""
        if value is None:
            return
        if value == "":
            raise invalid(name, value, "String may not be empty")
        bad = [str(ord(c)) for c in value if ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F]
        if bad:
            why = "String may not contain control sequences but had the following ASCII chars: "
            raise invalid(name, value, why + ", ".join(bad))

    def __str__(self) -> str:
        """Connect's wording."""
        return "non-empty string without ISO control characters"


class HostName:
    """Empty, or what may stand before the colon of `host:port`: a host name, an IPv4 or a bracketed IPv6 address."""

    def check(self, name: str, value: Any) -> None:
        """Names of other alphabets must be encoded (RFC 5890, Punycode)."""
        if value and not _HOST.fullmatch(value):
            raise invalid(name, value, "It must be the name or the address of a host, without scheme, port and path")

    def __str__(self) -> str:
        """What is accepted."""
        return "host name or address"


class ListSize:
    """A list of at most `maximum` members."""

    def __init__(self, maximum: int) -> None:
        """Keep the limit."""
        self.maximum = maximum

    def check(self, name: str, value: Any) -> None:
        """Null is invalid (in Connect a NullPointerException)."""
        if value is None:
            raise invalid(name, None, "entry must be non null")
        if len(value) > self.maximum:
            raise invalid(name, value, f"exceeds maximum list size of [{self.maximum}].")

    def __str__(self) -> str:
        """Connect's wording."""
        return f"List containing maximum of {self.maximum} elements"


class Composite:
    """Several validators; the message is that of the first one that fails."""

    def __init__(self, *validators: Validator) -> None:
        """Keep the validators, in order."""
        self.validators: Sequence[Validator] = validators

    def check(self, name: str, value: Any) -> None:
        """One after the other."""
        for validator in self.validators:
            validator.check(name, value)

    def __str__(self) -> str:
        """Their descriptions, comma separated."""
        return ", ".join(str(validator) for validator in self.validators)


class Lambda:
    """A function `(name, value)` that raises InvalidValueError, with a description."""

    def __init__(self, check: Callable[[str, Any], None], description: str) -> None:
        """Keep both."""
        self._check, self.description = check, description

    def check(self, name: str, value: Any) -> None:
        """Delegate."""
        self._check(name, value)

    def __str__(self) -> str:
        """The description."""
        return self.description
