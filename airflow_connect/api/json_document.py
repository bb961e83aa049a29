"""Dataclasses as JSON documents: one codec for all that crosses a process border or is kept in a topic.

msgspec reads. It does not write: `to_builtins` keeps tuples, and cannot leave members of a dataclass out.

A document has a member for each field, in their order. Tuples become lists, sets sorted lists, and a mapping by tuples
(`{TopicPartition: offset}`) rows `[topic, partition, offset]`. Reading checks every member against the type of its
field. A class whose document differs overrides `to_json` or `from_json`, and its override holds wherever another
document contains it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from operator import methodcaller
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from airflow_connect.errors import StateError

T = TypeVar("T", bound="JsonDocument")
Writer = Callable[[Any], Any]


_looking = threading.Lock()
_readable: set[type] = set()


class JsonDocument:
    """Base of a dataclass with a JSON form. The types of its fields are imported at run time.

    Attributes:
        LEFT_OUT: members that a document does not have if they are empty.
        MAY_LACK: members that a document need not have when it is read, because earlier releases did not write them;
            None: all whose field has a default. Those of `LEFT_OUT` are among them.
        KNOWS_ALL: whether a member that no field has is an error. Otherwise it is one of a newer release, and dropped.
    """

    __slots__ = ()
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    MAY_LACK: ClassVar[frozenset[str] | None] = None
    KNOWS_ALL: ClassVar[bool] = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return to_plain(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`.

        Raises:
            StateError: a member is missing, unknown, or of another type.
        """
        return from_plain(cls, data)


def to_plain(document: JsonDocument) -> dict[str, Any]:
    """The members of a document, for a `to_json` that adds to them or changes them."""
    form = _form_of(type(document))
    found: dict[str, Any] = {}
    for name, write in form.writers.items():
        value = getattr(document, name)
        if value or name not in form.left_out:
            found[name] = value if write is None or value is None else write(value)
    return found


def from_plain(kind: type[T], data: Mapping[str, Any]) -> T:
    """The document with these members, for a `from_json` that has changed them. Members may be read already.

    Raises:
        StateError: names the member, and what was expected.
    """
    import msgspec

    form = _form_of(kind)
    if kind not in _readable:
        _make_readable(kind)
    _check_members(kind, data)
    if not form.is_flat:
        data = {name: _prepared(kind, name, value) for name, value in data.items()}
    try:
        return msgspec.convert(data, kind, strict=False)  # Not strict: a number may be written as text.
    except msgspec.ValidationError as error:
        raise _unreadable(kind, str(error)) from error


def _make_readable(kind: type[JsonDocument]) -> None:
    """Let msgspec look at a class, and at those of its members, in one thread at a time.

    Two threads that do it at once crash the interpreter: msgspec 0.22 keeps what it finds in the class, and looks at it
    before it is whole. Afterwards it only reads that.
    """
    import msgspec

    with _looking:
        msgspec.json.Decoder(kind)
        _readable.add(kind)


def _check_members(kind: type[JsonDocument], data: Any) -> None:
    form = _form_of(kind)
    if not isinstance(data, Mapping):
        raise _unreadable(kind, f"it is of type {type(data).__name__}, not an object")
    members = data.keys()
    if not members >= form.required:
        raise _unreadable(kind, f"it has no member {min(form.required - members)}")
    if kind.KNOWS_ALL and not members <= form.known:
        raise _unreadable(kind, f"this release does not know its member {min(members - form.known)}")


class _Form(NamedTuple):
    """What the codec knows of a class.

    Attributes:
        writers: by member, what makes plain JSON of its value; None: the value is plain.
        known, required, left_out: names of members.
        nested: members with documents.
        by_tuples: members that are mappings by tuples.
        is_flat: whether msgspec alone can read it.
    """

    writers: Mapping[str, Writer | None]
    known: frozenset[str]
    required: frozenset[str]
    left_out: frozenset[str]
    nested: Mapping[str, type[JsonDocument]]
    by_tuples: frozenset[str]
    is_flat: bool


def _found_form(kind: Any) -> _Form:
    every = fields(kind)
    hints = get_type_hints(kind)
    with_default = {f.name for f in every if f.default is not MISSING or f.default_factory is not MISSING}
    names = tuple(f.name for f in every)
    may_lack = with_default if kind.MAY_LACK is None else kind.MAY_LACK | kind.LEFT_OUT
    nested = {name: document for name in names if (document := _document_in(hints[name])) is not None}
    by_tuples = frozenset(name for name in names if _is_by_tuples(hints[name]))
    return _Form(
        writers={name: _writer_of(hints[name]) for name in names},
        known=frozenset(names),
        required=frozenset(names) - may_lack,
        left_out=kind.LEFT_OUT,
        nested=nested,
        by_tuples=by_tuples,
        is_flat=not nested and not by_tuples,
    )


_form_of = cast("Callable[[type[JsonDocument]], _Form]", cache(_found_form))


def _document_in(hint: Any) -> type[JsonDocument] | None:
    """The document that a member is, may be, or is a list of."""
    if isinstance(hint, type) and issubclass(hint, JsonDocument):
        return hint
    parts = get_args(hint) if get_origin(hint) in (tuple, list, Sequence, Union, UnionType) else ()
    return next((found for part in parts if (found := _document_in(part)) is not None), None)


def _is_by_tuples(hint: Any) -> bool:
    key = get_args(hint)[0] if get_origin(hint) in (dict, Mapping) else None
    return isinstance(key, type) and issubclass(key, tuple)


def _writer_of(hint: Any) -> Writer | None:
    """What makes plain JSON of a value of this type. Only what has a type is copied: values of `Any` are plain JSON."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return next((write for part in parts if (write := _writer_of(part)) is not None), None)
    if kind in (dict, Mapping):
        return _rows if _is_by_tuples(hint) else _writer_of_mapping(_writer_of(parts[1]))
    if kind in (list, Sequence) or (kind is tuple and parts[-1] is Ellipsis):
        return _writer_of_list(_writer_of(parts[0]))
    if kind is frozenset:
        return sorted
    if isinstance(kind, type) and issubclass(kind, tuple):
        return list
    return methodcaller("to_json") if isinstance(kind, type) and issubclass(kind, JsonDocument) else None


def _writer_of_list(write: Writer | None) -> Writer:
    return list if write is None else lambda values: [write(one) for one in values]


def _writer_of_mapping(write: Writer | None) -> Writer:
    return dict if write is None else lambda values: {key: write(one) for key, one in values.items()}


def _rows(values: Mapping[tuple[Any, ...], Any]) -> list[list[Any]]:
    return [[*key, one] for key, one in sorted(values.items())]


def _prepared(kind: type[JsonDocument], name: str, value: Any) -> Any:
    """The value of a member with what msgspec cannot know: the documents in it are read, and rows are a mapping."""
    form = _form_of(kind)
    if name in form.by_tuples and not isinstance(value, Mapping):
        try:
            return {tuple(key): one for *key, one in value}
        except (TypeError, ValueError) as error:
            raise _unreadable(kind, f"its member {name} is not a list of rows") from error
    nested = form.nested.get(name)
    if nested is None:
        return value
    documents = value if isinstance(value, (list, tuple)) else [value]
    if _form_of(nested).is_flat and "from_json" not in vars(nested):
        # msgspec reads thousands of files faster than a call for each.
        for one in documents:
            if one is not None and not isinstance(one, nested):
                _check_members(nested, one)
        return value
    read = [nested.from_json(one) if isinstance(one, Mapping) else one for one in documents]
    return read if documents is value else read[0]


def _unreadable(kind: type[JsonDocument], why: str) -> StateError:
    return StateError(
        f"A {kind.__name__} cannot be read: {why}.",
        suggestion="Another release has written it, or it is damaged. Use one release of airflow-connect everywhere. If"
        " it is in a topic, inspect it with a console consumer before you delete anything.",
    )
