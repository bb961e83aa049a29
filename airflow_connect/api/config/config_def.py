"""ConfigDef: keys, their meaning and their values; the single source for parsing, validation, forms and docs.

The meaning is that of Kafka Connect's ConfigDef (KIP-26), including messages. There are three additions: a key may be
marked as having no effect here (`ConfigKey.ignored`), a family of keys may share a prefix (`KeyFamily`), and rules
between keys (`Rule`) are checked by `validate` and `parse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, Self

from airflow_connect.api.config import near_names, plugins
from airflow_connect.api.config import values as config_values
from airflow_connect.api.config.recommendations import recommend
from airflow_connect.api.config.references import ResolvedReferences, ResolvedText
from airflow_connect.api.config.validators import Validator
from airflow_connect.api.config.values import InvalidValueError, Password, Type
from airflow_connect.errors import ConfigError

NULL_VALUE = "Null value can not be supplied as the configuration value."


class Importance(Enum):
    """How much a key matters to most users."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """Width of the form field."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _NoDefault:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _NoDefault()
"""The default of a required key."""


class Recommender(Protocol):
    """Recommends values and decides whether a key is shown, based on the parsed values of other keys.

    Any exception becomes an error of the key: `validate` itself never fails.
    """

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Values to recommend; other values are valid too."""

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the key has an effect, given the other values."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Definition of one key.

    Attributes:
        default: used if the key is absent; text is parsed like a configured value; REQUIRED: there is none.
        documentation: complete sentences with units.
        plugin: the kind of plugin that the value names; without it, a CLASS may be any class name.
        ignored: "" or a complete sentence that explains why the key has no effect here.
        dependents: keys whose recommenders use this one; they follow it in a form.
        group, order, width, display_name, recommender: for forms, as in Connect.
    """

    name: str
    type: Type
    default: Any = REQUIRED
    documentation: str = ""
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    group: str | None = None
    plugin: plugins.PluginKind | None = None
    ignored: str = ""
    order: int = -1
    width: Width = Width.MEDIUM
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None

    @property
    def is_required(self) -> bool:
        """True if there is no default."""
        return self.default is REQUIRED

    def parse(self, value: Any) -> Any:
        """Typed value; InvalidValueError with Connect's message if it does not have the key's type."""
        kind = self.plugin
        find = None if kind is None else (lambda text: plugins.resolve(kind, text))
        return config_values.parse_type(self.name, value, self.type, find)

    @property
    def parsed_default(self) -> Any:
        """Typed default; None if required."""
        return None if self.is_required else self.parse(self.default)

    @property
    def valid_values(self) -> str:
        """Description of the valid values: the validator's, or the built-in classes, or ""."""
        if self.plugin is not None:
            return ", ".join(plugins.aliases(self.plugin))
        if self.type is Type.BOOLEAN:
            return "true, false"
        return str(self.validator) if self.validator is not None else ""

    def expectation(self) -> str:
        """Type and valid values: `INT, [1,...]`."""
        return ", ".join(part for part in (self.type.value, self.valid_values) if part)


@dataclass(slots=True)
class ConfigValue:
    """Result of validating one key; `value` is typed, or None if it could not be parsed."""

    name: str
    value: Any = None
    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True
    suggestions: list[str] = field(default_factory=list)
    code: str = ""
    """Of the error, if it has one of its own."""


class KeyFamily(NamedTuple):
    """Keys `<prefix>*` that are accepted unchecked, because something else defines them."""

    prefix: str
    documentation: str
    ignored: str = ""


class UnknownKey(NamedTuple):
    """An undefined key, and the known name that was probably meant, or ""."""

    name: str
    nearest: str


class IgnoredKey(NamedTuple):
    """A configured key that has no effect here, and the reason."""

    name: str
    reason: str


class UnusedBeside(NamedTuple):
    """Keys that have no effect if another key has a certain value, and the reason: a complete sentence."""

    names: frozenset[str]
    key: str
    value: str
    reason: str


class Problem(NamedTuple):
    """A violation of a rule: the wrong key, a complete sentence, and what to do."""

    key: str
    message: str
    suggestion: str = ""


Rule = Callable[[Mapping[str, Any]], Iterable[Problem]]
"""Checks several keys together; gets the parsed values, including defaults."""


class ConfigDef:
    """A set of key definitions, in the order of definition."""

    def __init__(self) -> None:
        """Create a definition without keys."""
        self._keys: dict[str, ConfigKey] = {}
        self._families: list[KeyFamily] = []
        self._rules: list[tuple[frozenset[str], Rule]] = []
        self._unused: list[UnusedBeside] = []

    def define(self, *keys: ConfigKey) -> Self:
        """Add keys.

        Raises:
            ConfigError: a key is defined twice, or its default does not have its type (a mistake of the plugin's
                author).
        """
        for key in keys:
            if key.name in self._keys:
                raise ConfigError(f"Configuration {key.name} is defined twice.", config_path=key.name)
            if key.type is not Type.CLASS:
                self._check_default(key)
            self._keys[key.name] = key
        return self

    def redefine(self, name: str, **changes: Any) -> Self:
        """Change parts of a definition, such as its default, because keys that plugins share differ only slightly.

        Raises:
            ConfigError: there is no such key, or the new default does not have its type (a mistake of the plugin's
                author).
        """
        key = self._keys.get(name)
        if key is None:
            raise ConfigError(f"Configuration {name} cannot be redefined: it is not defined.", config_path=name)
        changed = replace(key, **changes)
        if changed.type is not Type.CLASS:
            self._check_default(changed)
        self._keys[name] = changed
        return self

    def _check_default(self, key: ConfigKey) -> None:
        if key.is_required:
            return
        try:
            value = key.parsed_default
            if key.validator is not None:
                key.validator.check(key.name, value)
        except InvalidValueError as error:
            raise ConfigError(f"The default of configuration {key.name} is not valid: {error}.") from error

    def define_family(self, *families: KeyFamily) -> Self:
        """Accept every key that starts with a prefix; keys defined by name take precedence."""
        self._families.extend(families)
        return self

    def define_rule(self, names: Iterable[str], rule: Rule) -> Self:
        """Add a rule about the keys `names`; it is skipped if one of them is invalid by itself."""
        self._rules.append((frozenset(names), rule))
        return self

    def define_unused(self, names: Iterable[str], *, beside: tuple[str, str], reason: str) -> Self:
        """Declare keys that have no effect if another key has a certain value.

        Args:
            names: those keys.
            beside: the other key and its value, case-insensitive.
            reason: a complete sentence.
        """
        self._unused.append(UnusedBeside(frozenset(names), *beside, reason))
        return self

    def is_unused(self, name: str, raw: Mapping[str, str]) -> bool:
        """Whether a key would have no effect in a configuration, because of another key (`define_unused`)."""
        return any(
            name in unused.names and raw.get(unused.key, "").strip().lower() == unused.value.lower()
            for unused in self._unused
        )

    def include(self, other: ConfigDef) -> Self:
        """Add everything that `other` defines."""
        self.define(*other.keys.values()).define_family(*other.families)
        for names, rule in other._rules:
            self.define_rule(names, rule)
        self._unused.extend(other._unused)
        return self

    @property
    def keys(self) -> Mapping[str, ConfigKey]:
        """Definitions by name."""
        return self._keys

    @property
    def families(self) -> Sequence[KeyFamily]:
        """Families of keys."""
        return tuple(self._families)

    @property
    def rules(self) -> Sequence[tuple[frozenset[str], Rule]]:
        """Rules with the names of the keys that they check."""
        return tuple(self._rules)

    @property
    def groups(self) -> list[str]:
        """Group names in order of definition."""
        return list(dict.fromkeys(key.group for key in self._keys.values() if key.group is not None))

    @property
    def secret_names(self) -> frozenset[str]:
        """Names of the PASSWORD keys."""
        return frozenset(key.name for key in self._keys.values() if key.type is Type.PASSWORD)

    def defaults(self) -> dict[str, Any]:
        """Typed defaults of the keys with a default."""
        return {key.name: key.parsed_default for key in self._keys.values() if not key.is_required}

    def validate(self, raw: Mapping[str, Any]) -> list[ConfigValue]:
        """Check every defined key; never raises, but collects Connect's messages in `ConfigValue.errors`.

        Args:
            raw: the whole configuration; JSON numbers and booleans count as their text. Undefined keys are ignored.
        """
        values = {key.name: self._validate_key(key, raw) for key in self._keys.values()}
        for name in self._undefined_dependents():
            message = f"{name} is referred in the dependents, but not defined."
            values[name] = ConfigValue(name, errors=[message], visible=False)
        parsed = {name: value.value for name, value in values.items()}
        recommend(self._keys, values, parsed)
        self._apply_rules(values, parsed, raw)
        return list(values.values())

    def _undefined_dependents(self) -> list[str]:
        named = (name for key in self._keys.values() for name in key.dependents)
        return [name for name in dict.fromkeys(named) if name not in self._keys]

    def _apply_rules(self, values: dict[str, ConfigValue], parsed: Mapping[str, Any], raw: Mapping[str, Any]) -> None:
        wrong = {name for name, value in values.items() if value.errors}
        resolved = {value.reference: str(value) for value in raw.values() if isinstance(value, ResolvedText)}
        hide = ResolvedReferences(resolved).hide
        for names, rule in self._rules:
            if names & wrong:
                continue
            for problem in _problems(rule, names, parsed):
                blamed = values.setdefault(problem.key, ConfigValue(problem.key))
                blamed.errors.append(hide(problem.message))
                blamed.suggestions.append(hide(problem.suggestion))

    def _validate_key(self, key: ConfigKey, raw: Mapping[str, Any]) -> ConfigValue:
        outcome = self._checked(key, raw)
        if outcome.errors and isinstance(raw.get(key.name), ResolvedText):
            # The usual messages quote the value, or parts of it, which must not be shown.
            shown = self.masked({key.name: raw[key.name]})[key.name]
            outcome.errors = [
                f"Invalid value {shown} for configuration {key.name}: the resolved value is not {key.expectation()}"
            ]
            outcome.suggestions = []
        return outcome

    def _checked(self, key: ConfigKey, raw: Mapping[str, Any]) -> ConfigValue:
        outcome = ConfigValue(key.name)
        if key.name in raw and raw[key.name] is None:
            outcome.errors.append(NULL_VALUE)
            return outcome
        if key.name not in raw and key.is_required:
            outcome.errors.append(f'Missing required configuration "{key.name}" which has no default value.')
            misspelt = [unknown.name for unknown in self.unknown_keys(raw) if unknown.nearest == key.name]
            outcome.suggestions += [f"There is no key {name}. Did you mean {key.name}?" for name in misspelt]
        given: str | None = None
        try:
            given = config_values.coerce_json(key.name, raw[key.name]) if key.name in raw else None
            outcome.value = key.parsed_default if key.name not in raw else key.parse(given)
        except InvalidValueError as error:
            outcome.errors.append(str(error))
            outcome.suggestions.append(_class_suggestion(key, given))
        except ConfigError as error:
            outcome.errors.append(error.message)
            outcome.suggestions.append(error.suggestion)
        # As in Connect, the validator also gets the null of a failed parse: two messages for one key are
        # usual.
        if key.validator is not None and not (key.is_required and key.name not in raw):
            problem = _refusal(key.validator, key.name, outcome.value, is_parsed=not outcome.errors)
            if problem:
                outcome.errors.append(problem)
                outcome.suggestions.append(_class_suggestion(key, given))
        return outcome

    def parse(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Typed values of every defined key, including defaults.

        Raises:
            ConfigError: names every wrong key with Connect's message, its valid values and what to do; `config_path`
                is the first wrong key. It contains no secret.
        """
        values = self.validate(raw)
        wrong = [value for value in values if value.errors]
        if wrong:
            raise self.error_of(wrong)
        return {value.name: value.value for value in values}

    def error_of(self, wrong: Sequence[ConfigValue]) -> ConfigError:
        """The ConfigError that names all of `wrong`, which must not be empty."""
        # A rule that applies to two keys returns the same text twice; once is enough for a reader.
        messages = list(dict.fromkeys(_sentence(message) for value in wrong for message in value.errors))
        if len(messages) == 1:
            text = messages[0]
        else:
            numbered = " ".join(f"({n}) {message}" for n, message in enumerate(messages, 1))
            text = f"The configuration has {len(messages)} errors: {numbered}"
        suggestions = dict.fromkeys(self._suggestion(value) for value in wrong)
        codes = {value.code for value in wrong}
        code = codes.pop() if len(codes) == 1 else ""
        return ConfigError(text, code=code, suggestion=" ".join(suggestions), config_path=wrong[0].name)

    def _suggestion(self, value: ConfigValue) -> str:
        own = " ".join(dict.fromkeys(_sentence(text) for text in value.suggestions if text))
        key = self._keys.get(value.name)
        if own or key is None:
            return own
        return f"Set {key.name} ({key.expectation()}): {_first_sentence(key.documentation or key.ignored)}"

    def unknown_keys(self, raw: Iterable[str]) -> list[UnknownKey]:
        """Keys of `raw` without a definition or a family, with the nearest known name."""
        unknown = [name for name in raw if name not in self._keys and self._family_of(name) is None]
        return [UnknownKey(name, self.nearest_name(name)) for name in unknown]

    def nearest_name(self, name: str, likeness: float = near_names.USUAL_LIKENESS) -> str:
        """The most similar known name, or ""; in a family only the prefix is corrected."""
        for family in self._families:
            parts = name.split(".")
            depth = family.prefix.count(".")
            head, rest = ".".join(parts[:depth]) + ".", ".".join(parts[depth:])
            # Only the prefix is compared: the rest is equal on both sides and would make any name look similar.
            if rest and near_names.nearest(head, [family.prefix], likeness=near_names.VERY_NEAR):
                return family.prefix + rest
        found = near_names.nearest(name, self._keys, likeness=likeness)
        return found[0] if found else ""

    def ignored_keys(self, raw: Mapping[str, str]) -> list[IgnoredKey]:
        """Configured keys that have no effect here, or none with the values of other keys."""
        found = [
            IgnoredKey(name, unused.reason)
            for unused in self._unused
            if raw.get(unused.key, "").strip().lower() == unused.value.lower()
            for name in raw
            if name in unused.names
        ]
        for name in raw:
            key, family = self._keys.get(name), self._family_of(name)
            reason = key.ignored if key is not None else family.ignored if family is not None else ""
            if reason:
                found.append(IgnoredKey(name, reason))
        return found

    def _family_of(self, name: str) -> KeyFamily | None:
        matching = [family for family in self._families if name.startswith(family.prefix)]
        return max(matching, key=lambda family: len(family.prefix), default=None)

    def masked(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of `raw` that can be shown: secrets are `[hidden]`, references to config providers stay."""
        return config_values.masked(raw, self.secret_names)


def _problems(rule: Rule, names: frozenset[str], parsed: Mapping[str, Any]) -> list[Problem]:
    try:
        return list(rule(parsed))
    except Exception as error:  # noqa: BLE001 (code of plugins; what its message holds is not known)
        listed = sorted(names)
        text = f"The combination of {', '.join(listed)} cannot be checked: {type(error).__name__}."
        return [Problem(listed[0], text, "Contact the authors of the connector.")] if listed else []


def _refusal(validator: Validator, name: str, value: Any, *, is_parsed: bool) -> str:
    """The message of a validator about a value, or ""."""
    try:
        validator.check(name, value)
    except InvalidValueError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (code of plugins; what its message holds is not known)
        # Few validators expect the null of a value that could not be parsed, which is already reported.
        return f"The value of {name} cannot be checked: {type(error).__name__}." if is_parsed else ""
    return ""


def _class_suggestion(key: ConfigKey, given: str | None) -> str:
    """For a class that was not found: the nearest names."""
    if key.plugin is None or given is None:
        return ""
    try:
        plugins.resolve(key.plugin, given)
    except ConfigError as error:
        return f"{key.name}: {error.suggestion}"
    return ""


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "?", "!")) else text + "."


def _first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + "." if dot else text


__all__ = [
    "REQUIRED",
    "ConfigDef",
    "ConfigKey",
    "ConfigValue",
    "IgnoredKey",
    "Importance",
    "InvalidValueError",
    "KeyFamily",
    "Password",
    "Problem",
    "Recommender",
    "Rule",
    "Type",
    "UnknownKey",
    "Width",
]
