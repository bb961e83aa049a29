"""A configuration as a class: each key is declared once, as a class attribute, and is its typed value on an object.

```python
_FILES = KeyGroup("Files")


class LinesConfig(TypedConfig):
    file = _FILES.high.text("file", REQUIRED, "The file.", NonEmptyString())
    batch = _FILES.low.integer("batch.size", 2000, "Largest number of lines in a batch.", Range(1))


LinesConfig.config_def()  # for forms, validation and pages
LinesConfig.from_config({"file": "a.log"}).batch  # 2000, an int
LinesConfig.batch.name, f"{LinesConfig.batch}"  # "batch.size", for messages
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Generic, Self, TypeVar, overload

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Rule
from airflow_connect.api.config.plugins import PluginKind, PluginRef, resolve
from airflow_connect.api.config.validators import OneOf, Validator
from airflow_connect.api.config.values import Password, Type

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
Value = TypeVar("Value")
Other = TypeVar("Other")


class TypedKey(Generic[Value]):
    """One key: the declaration on the class, the typed value on an object.

    Attributes:
        key: the definition.
        read: what an object holds, from the value that `ConfigDef.parse` returns.
    """

    __slots__ = ("_attribute", "key", "read")

    def __init__(self, key: ConfigKey, read: Callable[[Any], Value]) -> None:
        """Keep the definition."""
        self.key, self.read = key, read
        self._attribute = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the attribute."""
        self._attribute = name

    @overload
    def __get__(self, instance: None, owner: type) -> TypedKey[Value]: ...

    @overload
    def __get__(self, instance: TypedConfig, owner: type) -> Value: ...

    def __get__(self, instance: TypedConfig | None, owner: type) -> TypedKey[Value] | Value:
        """The declaration, or the value of an object."""
        if instance is None:
            return self
        value: Value = instance._values[self.name]
        return value

    def __set__(self, instance: TypedConfig, value: object) -> None:
        """Refuse: a configuration does not change."""
        raise AttributeError(f"{type(instance).__name__}.{self._attribute} cannot be set.")

    @property
    def name(self) -> str:
        """The key's name in a configuration."""
        return self.key.name

    def __str__(self) -> str:
        """The key's name, for messages."""
        return self.key.name

    def of(self, parsed: Mapping[str, Any]) -> Value:
        """The value among those that `ConfigDef.parse` returns, or that a check of several keys gets."""
        return self.read(parsed[self.key.name])

    def to(self, convert: Callable[[Value], Other]) -> TypedKey[Other]:
        """The same key with another value on objects."""
        read = self.read
        return TypedKey(self.key, lambda parsed: convert(read(parsed)))

    def equals(self, chosen: str) -> TypedKey[bool]:
        """The same key; objects hold whether its value is `chosen`."""
        return self.to(lambda value: value == chosen)

    def or_blank(self: TypedKey[str]) -> TypedKey[str]:
        """The same key; objects hold "" if it has no value."""
        return self.to(lambda value: value or "")

    def or_zero(self: TypedKey[int | None]) -> TypedKey[int]:
        """The same key; objects hold 0 if it has no value."""
        return self.to(lambda value: value or 0)

    def at_least(self: TypedKey[int], least: int) -> TypedKey[int]:
        """The same key; objects hold `least` for smaller numbers."""
        return self.to(lambda value: max(least, value))

    def or_none(self) -> TypedKey[Value | None]:
        """The same key; objects hold None for a blank value."""
        return self.to(lambda value: value or None)


class Keys:
    """Declares keys of one group and importance.

    The arguments of all methods: the key's name; its default, as text or typed (REQUIRED: there is none); documentation
    in complete sentences, with units; a validator; and further attributes of `ConfigKey` by name.
    """

    def __init__(self, group: str | None, importance: Importance) -> None:
        """Keep what the keys share."""
        self._group, self._importance = group, importance

    def text(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[str]:
        """Text."""
        return self._declared(Type.STRING, name, default, documentation, validator=validator, **more)

    def optional_text(
        self, name: str, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[str | None]:
        """Text; absent: None."""
        return self._declared(Type.STRING, name, None, documentation, validator=validator, **more)

    def optional_short(
        self, name: str, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[int | None]:
        """A number of 16 bits; absent: None."""
        return self._declared(Type.SHORT, name, None, documentation, validator=validator, **more)

    def optional_long(
        self, name: str, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[int | None]:
        """A number of 64 bits; absent: None."""
        return self._declared(Type.LONG, name, None, documentation, validator=validator, **more)

    def choice(self, name: str, default: str, choices: Sequence[str], documentation: str, **more: Any) -> TypedKey[str]:
        """One of several words."""
        return self._declared(Type.STRING, name, default, documentation, validator=OneOf(*choices), **more)

    def short(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[int]:
        """A number of 16 bits."""
        return self._declared(Type.SHORT, name, default, documentation, validator=validator, **more)

    def integer(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[int]:
        """A number of 32 bits."""
        return self._declared(Type.INT, name, default, documentation, validator=validator, **more)

    def long(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[int]:
        """A number of 64 bits."""
        return self._declared(Type.LONG, name, default, documentation, validator=validator, **more)

    def boolean(self, name: str, default: Any, documentation: str, **more: Any) -> TypedKey[bool]:
        """`true` or `false`."""
        return self._declared(Type.BOOLEAN, name, default, documentation, **more)

    def words(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[tuple[str, ...]]:
        """Text with commas; absent: ()."""
        return self._declared(Type.LIST, name, default, documentation, validator=validator, **more).to(_words)

    def password(
        self, name: str, default: Any, documentation: str, validator: Validator | None = None, **more: Any
    ) -> TypedKey[Password | None]:
        """A secret."""
        return self._declared(Type.PASSWORD, name, default, documentation, validator=validator, **more)

    def secret(self, name: str, default: Any, documentation: str, **more: Any) -> TypedKey[str]:
        """A secret; objects hold its clear text, "" if there is none."""
        return self.password(name, default, documentation, **more).to(clear_text)

    def plugin(self, name: str, default: Any, documentation: str, kind: PluginKind, **more: Any) -> TypedKey[PluginRef]:
        """The class of a plugin."""
        key = self._declared(Type.CLASS, name, default, documentation, plugin=kind, **more)
        return key.to(lambda class_name: resolve(kind, class_name))

    def optional_plugin(
        self, name: str, documentation: str, kind: PluginKind, **more: Any
    ) -> TypedKey[PluginRef | None]:
        """The class of a plugin; absent: None."""
        key = self._declared(Type.CLASS, name, None, documentation, plugin=kind, **more)
        return key.to(lambda class_name: None if class_name is None else resolve(kind, class_name))

    def _declared(self, kind: Type, name: str, default: Any, documentation: str, **more: Any) -> TypedKey[Any]:
        key = ConfigKey(name, kind, default, documentation, importance=self._importance, group=self._group, **more)
        return TypedKey(key, lambda parsed: parsed)


class KeyGroup:
    """Declares the keys of one group of a form.

    Attributes:
        high, medium, low: by the importance of the keys; see `Importance`.
    """

    def __init__(self, name: str | None) -> None:
        """Keep the name of the group; None: the keys are in no group."""
        self.high, self.medium, self.low = Keys(name, HIGH), Keys(name, MEDIUM), Keys(name, LOW)


class TypedConfig:
    """Base of configurations whose keys are class attributes, in the order of a form.

    A subclass may override `checks`, and `define` for keys that other classes declare. What follows from several keys
    is a property.

    Attributes:
        raw: the configuration that was given.
        parsed: typed values of all keys of `config_def`, by name.
    """

    def __init__(self, raw: Mapping[str, Any], parsed: Mapping[str, Any]) -> None:
        """Read each key's value."""
        self.raw, self.parsed = raw, parsed
        self._values = {key.name: key.of(parsed) for key in self.declared()}

    @classmethod
    def from_config(cls, raw: Mapping[str, Any]) -> Self:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        return cls(raw, cls.config_def().parse(raw))

    @classmethod
    @cache
    def config_def(cls) -> ConfigDef:
        """Every key, with the rules between them."""
        definition = ConfigDef()
        cls.define(definition)
        for keys, rule in cls.checks():
            definition.define_rule(map(str, keys), rule)
        return definition

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Add the keys to a definition."""
        definition.define(*(key.key for key in cls.declared()))

    @classmethod
    def declared(cls) -> list[TypedKey[Any]]:
        """The keys of its bases, in their order, then its own."""
        found: dict[str, TypedKey[Any]] = {}
        for base in cls.__bases__:
            if issubclass(base, TypedConfig):
                found |= {key.name: key for key in base.declared() if key.name not in found}
        found |= {value.name: value for value in vars(cls).values() if isinstance(value, TypedKey)}
        return list(found.values())

    @classmethod
    def checks(cls) -> Checks:
        """Checks of several keys together: those that must be valid by themselves first, and the check.

        Keys that another class declares may be given by their names.
        """
        return ()


Checks = Iterable[tuple[Sequence[TypedKey[Any] | str], Rule]]
"""What `TypedConfig.checks` returns."""


def clear_text(secret: Password | None) -> str:
    """The secret, or "" if there is none."""
    return secret.value if secret is not None else ""


def _words(parsed: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(parsed or ())
