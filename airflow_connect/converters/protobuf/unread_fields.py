"""Names the fields of Protobuf messages that the converter leaves out: their type does not have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

from airflow_connect.converters.unread import Unread


def naming_unread(message: Any, read: Callable[[Any], Any], unread: Unread | None) -> Callable[[Any], Any]:
    """`read` for messages of a type, preceded by a look at what the type does not have; see `unread_finder`."""
    find = unread_finder(message, unread)
    if find is None:
        return read

    def read_and_name(found: Any) -> Any:
        find(found)
        return read(found)

    return read_and_name


def unread_finder(message: Any, unread: Unread | None) -> Callable[[Any], None] | None:
    """A function that names what messages of a type hold and the type does not have, or None.

    It need not be called for messages without an UnknownFieldSet, unless the type may have extensions.

    Args:
        message: the type, a Descriptor.
        unread: gets the names; None: nothing is looked for.
    """
    if unread is None:
        return None
    add = unread.add
    # Of the class, because a field may have this name.
    set_fields = message_factory.GetMessageClass(message).ListFields if message.is_extendable else None

    def find(found: Any) -> None:
        for field in UnknownFieldSet(found):
            add(_name(message, field.field_number))
        if set_fields is not None:
            for field, _ in set_fields(found):
                if field.is_extension:
                    add(f"the extension {field.full_name}")

    return find


def _name(message: Any, number: int) -> str:
    """If the type has the number, it is that of an enum of proto2: its numbers without a symbol are unknown fields."""
    own = message.fields_by_number.get(number)
    if own is not None:
        return f"numbers without a symbol in {own.full_name}"
    return f"field {number} of {message.full_name}"
