"""ConfigDef: keys, their meaning and their values; the one source of parsing, validation, forms and docs.

The meaning is that of Kafka Connect's ConfigDef (KIP-26), message texts included. Three things are ours: a
key may be marked as having no meaning here (`ConfigKey.ignored`), a family of keys may share a prefix
(`KeyFamily`), and rules between keys (`Rule`) take part in `validate` and `parse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, Self

from airflow_connect.api import config_values, near_names, plugins
from airflow_connect.api.config_recommendations import recommend
from airflow_connect.api.config_references import ResolvedReferences, ResolvedText
from airflow_connect.api.config_validators import Validator
from airflow_connect.api.config_values import InvalidValueError, Password, Type
from airflow_connect.api.errors import ConfigError

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
"""The default of a key that must be given."""


class Recommender(Protocol):
    """Proposes values and decides whether a key is shown, from the other keys' parsed values.

    Whatever it raises becomes an error of the key: `validate` itself never fails.
    """

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Values to offer; others stay valid."""

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the key has a meaning beside the other values."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Definition of one key.

    Attributes:
        default: used when the key is absent; text is parsed as a given value would be; REQUIRED: there is
            none.
        documentation: complete sentences with units.
        plugin: the kind of plugin that the value names; a CLASS without it may be any class name.
        ignored: "" or the complete sentence that says why the key has no meaning here.
        dependents: keys whose recommenders look at this one: in a form they are asked for after it.
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
        """True when there is no default."""
        return self.default is REQUIRED

    def parse(self, value: Any) -> Any:
        """Typed value; InvalidValueError with Connect's message when it is not of the key's type."""
        kind = self.plugin
        find = None if kind is None else (lambda text: plugins.resolve(kind, text))
        return config_values.parse_type(self.name, value, self.type, find)

    @property
    def parsed_default(self) -> Any:
        """Typed default, None when required."""
        return None if self.is_required else self.parse(self.default)

    @property
    def valid_values(self) -> str:
        """Which values are valid, for people: the validator's description or the built-in classes, or ""."""
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
    """Outcome of validating one key; `value` is typed, None when it could not be parsed."""

    name: str
    value: Any = None
    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True
    suggestions: list[str] = field(default_factory=list)


class KeyFamily(NamedTuple):
    """Keys `<prefix>*` that are accepted as they are, because something else defines them."""

    prefix: str
    documentation: str
    ignored: str = ""


class UnknownKey(NamedTuple):
    """A key that nothing defines, and the known name that was probably meant, or ""."""

    name: str
    nearest: str


class IgnoredKey(NamedTuple):
    """A given key that has no meaning here, and why."""

    name: str
    reason: str


class UnusedBeside(NamedTuple):
    """Keys that have no meaning beside a value of another key, and why: a complete sentence."""

    names: frozenset[str]
    key: str
    value: str
    reason: str


class Problem(NamedTuple):
    """What a rule found wrong: the key to blame, a complete sentence, and what to do."""

    key: str
    message: str
    suggestion: str = ""


Rule = Callable[[Mapping[str, Any]], Iterable[Problem]]
"""Checks several keys together; gets the parsed values, defaults included."""


class ConfigDef:
    """A set of key definitions, in the order of definition."""

    def __init__(self) -> None:
        """Without keys."""
        self._keys: dict[str, ConfigKey] = {}
        self._families: list[KeyFamily] = []
        self._rules: list[tuple[frozenset[str], Rule]] = []
        self._unused: list[UnusedBeside] = []

    def define(self, *keys: ConfigKey) -> Self:
        """Add keys.

        Raises:
            ConfigError: a key is defined twice, or its default is not of its type (a mistake of the plugin's
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
        """Change parts of an own definition, such as its default: keys that several plugins share differ in little.

        Raises:
            ConfigError: there is no such key, or the new default is not of its type (a mistake of the plugin's author).
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
        """Add a rule over the keys `names`; it is skipped while one of them is wrong in itself."""
        self._rules.append((frozenset(names), rule))
        return self

    def define_unused(self, names: Iterable[str], *, beside: tuple[str, str], reason: str) -> Self:
        """Name keys that have no meaning where another key has a value.

        Args:
            names: those keys.
            beside: the other key and its value, in any case of letters.
            reason: a complete sentence.
        """
        self._unused.append(UnusedBeside(frozenset(names), *beside, reason))
        return self

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
        """Rules with the names of the keys that they look at."""
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
        """Typed defaults of the keys that have one."""
        return {key.name: key.parsed_default for key in self._keys.values() if not key.is_required}

    def validate(self, raw: Mapping[str, Any]) -> list[ConfigValue]:
        """Check every defined key; never raises, collects Connect's messages in `ConfigValue.errors`.

        Args:
            raw: the whole configuration; JSON numbers and booleans count as their text. Keys of others are
                left alone.
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
            # The usual texts quote what was found, whole or in parts. It is to be shown nowhere.
            shown = self.masked({key.name: raw[key.name]})[key.name]
            outcome.errors = [
                f"Invalid value {shown} for configuration {key.name}: what it stands for is not {key.expectation()}"
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
        # As in Connect the validator also sees the null of a failed parse: two messages for one key are
        # usual.
        if key.validator is not None and not (key.is_required and key.name not in raw):
            problem = _refusal(key.validator, key.name, outcome.value, is_parsed=not outcome.errors)
            if problem:
                outcome.errors.append(problem)
                outcome.suggestions.append(_class_suggestion(key, given))
        return outcome

    def parse(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Typed values of every defined key, defaults filled in.

        Raises:
            ConfigError: names every wrong key with Connect's message, what the key takes and what to do;
                `config_path` is the first wrong key. No secret is in it.
        """
        values = self.validate(raw)
        wrong = [value for value in values if value.errors]
        if wrong:
            raise self.error_of(wrong)
        return {value.name: value.value for value in values}

    def error_of(self, wrong: Sequence[ConfigValue]) -> ConfigError:
        """The ConfigError that names all of `wrong`, which must not be empty."""
        # A rule that blames two keys says the same twice; once is enough for a reader.
        messages = list(dict.fromkeys(_sentence(message) for value in wrong for message in value.errors))
        if len(messages) == 1:
            text = messages[0]
        else:
            numbered = " ".join(f"({n}) {message}" for n, message in enumerate(messages, 1))
            text = f"The configuration has {len(messages)} errors: {numbered}"
        suggestions = dict.fromkeys(self._suggestion(value) for value in wrong)
        return ConfigError(text, suggestion=" ".join(suggestions), config_path=wrong[0].name)

    def _suggestion(self, value: ConfigValue) -> str:
        own = " ".join(dict.fromkeys(_sentence(text) for text in value.suggestions if text))
        key = self._keys.get(value.name)
        if own or key is None:
            return own
        return f"Set {key.name} ({key.expectation()}): {_first_sentence(key.documentation or key.ignored)}"

    def unknown_keys(self, raw: Iterable[str]) -> list[UnknownKey]:
        """Keys of `raw` that neither a definition nor a family covers, with the nearest known name."""
        unknown = [name for name in raw if name not in self._keys and self._family_of(name) is None]
        return [UnknownKey(name, self.nearest_name(name)) for name in unknown]

    def nearest_name(self, name: str, likeness: float = near_names.USUAL_LIKENESS) -> str:
        """The known name most like `name`, or ""; of a family the prefix is corrected, the rest kept."""
        for family in self._families:
            parts = name.split(".")
            depth = family.prefix.count(".")
            head, rest = ".".join(parts[:depth]) + ".", ".".join(parts[depth:])
            # Only the prefix is compared: the rest is the same on both sides and would make anything look near.
            if rest and near_names.nearest(head, [family.prefix], likeness=near_names.VERY_NEAR):
                return family.prefix + rest
        found = near_names.nearest(name, self._keys, likeness=likeness)
        return found[0] if found else ""

    def ignored_keys(self, raw: Mapping[str, str]) -> list[IgnoredKey]:
        """Given keys that are accepted and have no meaning here, or none beside the others."""
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
        text = f"How {', '.join(listed)} fit together cannot be checked: {type(error).__name__}."
        return [Problem(listed[0], text, "Ask those who wrote the connector.")] if listed else []


def _refusal(validator: Validator, name: str, value: Any, *, is_parsed: bool) -> str:
    """What a validator has against a value, or ""."""
    try:
        validator.check(name, value)
    except InvalidValueError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (code of plugins; what its message holds is not known)
        # Few validators expect the null of a value that could not be parsed, which has been told already.
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
