"""Types of the fields that a pattern captures: from text to a value, one by one and in columns."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PLAIN_INTEGER = r"^-?[0-9]{1,18}$"
_PLAIN_DECIMAL = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$"

STRING, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN = "string", "int32", "int64", "float32", "float64", "boolean"
OTHER_NAMES = {
    "": STRING, "str": STRING, "int": INT64, "integer": INT64, "long": INT64, "float": FLOAT64, "double": FLOAT64,
    "bool": BOOLEAN,
}  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    STRING: schemas.OPTIONAL_STRING,
    INT32: Schema(schemas.Type.INT32, True),
    INT64: Schema(schemas.Type.INT64, True),
    FLOAT32: Schema(schemas.Type.FLOAT32, True),
    FLOAT64: Schema(schemas.Type.FLOAT64, True),
    BOOLEAN: schemas.OPTIONAL_BOOLEAN,
}


class FieldType(NamedTuple):
    """A field and the name of its type, one of `SCHEMAS`."""

    field: str
    type: str

    def value(self, text: str | None) -> Any:
        """The text as a value; None stays None.

        Raises:
            ValueError: the text does not have this type.
        """
        if text is None or self.type == STRING:
            return text
        if self.type in (INT32, INT64):
            return self._integer(text)
        if self.type == BOOLEAN:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise self._wrong(text)
        if not _DECIMAL.fullmatch(text):
            raise self._wrong(text)
        if self.type == FLOAT64:
            return float(text)
        try:
            return struct.unpack("f", struct.pack("f", float(text)))[0]
        except OverflowError as error:
            raise self._wrong(text) from error

    def _integer(self, text: str) -> int:
        bits = 31 if self.type == INT32 else 63
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not -(1 << bits) <= number < 1 << bits:
            raise self._wrong(text)
        return number

    def _wrong(self, text: str) -> ValueError:
        return ValueError(f"field {self.field} is {text[:80]!r}, which is not a valid {self.type}")

    def column(self, texts: pa.StringArray) -> pa.Array[Any] | None:
        """The same for a column; None if a text is not vectorizable and `value` must decide."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.type == STRING:
            return texts
        if self.type == BOOLEAN:
            return None
        plain = _PLAIN_INTEGER if self.type in (INT32, INT64) else _PLAIN_DECIMAL
        if not pc.all(pc.match_substring_regex(texts, plain), min_count=0).as_py():
            return None
        first = {INT32: pa.int32(), INT64: pa.int64()}.get(self.type, pa.float64())
        try:
            numbers: Any = pc.cast(texts, first)
        except pa.ArrowInvalid:
            return None
        if self.type != FLOAT32:
            return numbers  # type: ignore[no-any-return]
        narrow: Any = pc.cast(numbers, pa.float32(), safe=False)
        # A number too large for the type becomes infinite here, and an error in `value`.
        return narrow if pc.all(pc.is_finite(narrow), min_count=0).as_py() else None
