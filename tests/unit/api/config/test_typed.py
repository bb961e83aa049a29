"""Keys that are declared as class attributes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Problem, Rule
from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import NonEmptyString, Range
from airflow_connect.api.config.values import Password, Type
from airflow_connect.errors import ConfigError

_FILES, _LIMITS = KeyGroup("Files"), KeyGroup("Limits")


class Base(TypedConfig):
    """Keys that two connectors share."""

    file = _FILES.high.text("file", REQUIRED, "The file.", NonEmptyString())
    folder = _FILES.low.text("folder", "", "Its folder.").or_none()


class Lines(Base):
    """A connector's own keys follow."""

    names = _FILES.medium.words("names", "a,b", "Names.")
    batch = _LIMITS.low.integer("batch.size", 2000, "Lines in a batch.", Range(1))
    seconds = _LIMITS.low.long("seconds", 5, "Seconds.").to(lambda seconds: seconds * 1000)
    fails = _LIMITS.medium.choice("on.error", "skip", ("skip", "fail"), "What an error does.").equals("fail")
    secret = _LIMITS.low.password("secret", None, "A secret.")
    fast = _LIMITS.low.boolean("fast", True, "Whether it is fast.")

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """A check of two keys."""
        yield (cls.file, cls.folder), _file_is_in_folder


def _file_is_in_folder(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    folder = Lines.folder.of(parsed)
    if folder and not Lines.file.of(parsed).startswith(folder):
        yield Problem(Lines.file.name, f"{Lines.file} is not in {Lines.folder}")


def test_object_holds_typed_values() -> None:
    config = Lines.from_config({"file": "/x/a", "folder": "/x", "batch.size": "7", "on.error": "fail", "secret": "s3"})
    assert (config.file, config.folder, config.names, config.batch) == ("/x/a", "/x", ("a", "b"), 7)
    assert (config.seconds, config.fails, config.secret, config.fast) == (5000, True, Password("s3"), True)
    assert Lines.from_config({"file": "a"}).folder is None


def test_class_holds_the_declaration() -> None:
    assert (Lines.batch.name, f"{Lines.batch}", Lines.batch.of({"batch.size": 3})) == ("batch.size", "batch.size", 3)
    key = ConfigKey(
        "batch.size", Type.INT, 2000, "Lines in a batch.", Lines.batch.key.validator, Importance.LOW, "Limits"
    )
    assert Lines.batch.key == key


def test_definition_has_the_keys_in_order_and_the_checks() -> None:
    definition = Lines.config_def()
    assert list(definition.keys) == ["file", "folder", "names", "batch.size", "seconds", "on.error", "secret", "fast"]
    assert list(Base.config_def().keys) == ["file", "folder"] and definition is Lines.config_def()
    with pytest.raises(ConfigError, match=r"file is not in folder"):
        Lines.from_config({"file": "/y/a", "folder": "/x"})
    with pytest.raises(ConfigError, match=r"batch\.size"):
        Lines.from_config({"file": "/y/a", "batch.size": "0"})


def test_keys_of_other_classes_can_be_added() -> None:
    class More(Base):
        @classmethod
        def define(cls, definition: ConfigDef) -> None:
            super().define(definition)
            definition.define(ConfigKey("other", Type.INT, 1))

    assert list(More.config_def().keys) == ["file", "folder", "other"]
    assert More.from_config({"file": "a"}).parsed["other"] == 1


def test_object_does_not_change_and_shows_no_secret() -> None:
    config = Lines.from_config({"file": "a", "secret": "opensesame"})
    with pytest.raises(AttributeError, match=r"Lines\.batch cannot be set"):
        config.batch = 1  # type: ignore[assignment]
    assert "opensesame" not in repr(config)
    copy = pickle.loads(pickle.dumps(config))
    assert (copy.file, copy.secret) == ("a", config.secret)
