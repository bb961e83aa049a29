"""Headers of a batch as texts, in columns: what the header converter reads, as Connect writes it as text.

A value that is there many times is converted once. Texts that `SimpleHeaderConverter` leaves as they are (words, whole
numbers, ids of letters and digits) are recognised all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.converters.header_columns import header_lists, parts_of
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import DataError
from airflow_connect.formats.key_and_header_values import stored_header_text
from airflow_connect.kafka.reading.message_headers import name_text, no_headers

if TYPE_CHECKING:
    from airflow_connect.kafka.reading.column_batch import ColumnBatch

# Texts that are read as themselves. What begins with a letter is a STRING, unless it is a literal with blanks behind.
_WORD = r"(?s)^[A-Za-z].*\z"
_LITERAL = r"^(?:null|true|false)[\x00-\x20]*\z"
_WHOLE = r"^(?:0|[1-9][0-9]{0,17})\z"
# No delimiter of a list or a map, no number because of a letter other than e, and no date, because all dates have ten
# characters.
_ID = r"^[0-9][0-9A-Za-z_-]*[A-DF-Za-df-z][0-9A-Za-z_-]*\z"
_LENGTH_OF_DATES = 10


class HeaderTexts:
    """Converts headers of batches."""

    def __init__(self, converter: Any) -> None:
        """`converter`: configured; one whose result depends on the bytes of a value alone."""
        self._converter = converter

    def of(self, batch: ColumnBatch) -> Any | None:
        """The headers of each record, see `RecordColumns.headers`; None: they must be converted one by one."""
        found = batch.headers()
        ends, names, values = parts_of(no_headers(len(batch)) if found is None else found)
        texts, name_texts = self._values(values), _names(names)
        return None if texts is None or name_texts is None else header_lists(ends, name_texts, texts)

    def _values(self, values: Any) -> Any | None:
        encoded = values.dictionary_encode()
        texts = self._texts(encoded.dictionary)
        return None if texts is None else texts.take(encoded.indices)

    def _texts(self, values: Any) -> Any | None:
        """Texts of values that are not null; None: one of them cannot be converted."""
        plain = _plain(self._converter, values)
        if plain is None:
            return self._one_by_one(values)
        texts, is_plain = plain
        if pc.all(is_plain).as_py() is not False:
            return texts
        others = self._one_by_one(values.filter(pc.invert(is_plain)))
        return None if others is None else pc.replace_with_mask(texts, pc.invert(is_plain), others)

    def _one_by_one(self, values: Any) -> Any | None:
        texts = []
        try:
            for value in values.to_pylist():
                read = self._converter.to_connect_header("", "", value)
                texts.append(stored_header_text(read.schema, read.value))
        except DataError:  # Found again, and reported, record by record.
            return None
        return pa.array(texts, pa.string())


def _plain(converter: Any, values: Any) -> tuple[Any, Any] | None:
    """All values as UTF-8, and which of them are converted to just that; None: not all are UTF-8, or it is unknown."""
    is_simple = type(converter) is SimpleHeaderConverter
    if not is_simple and not (type(converter) is StringConverter and converter.is_utf8):
        return None
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    return texts, _reads_as_itself(texts) if is_simple else pa.array([True] * len(texts), pa.bool_())


def _reads_as_itself(texts: Any) -> Any:
    match: Any = pc.match_substring_regex
    words = pc.and_not(match(texts, _WORD), match(texts, _LITERAL))
    length: Any = pa.scalar(_LENGTH_OF_DATES, pa.int32())
    ids = pc.and_(match(texts, _ID), pc.not_equal(pc.binary_length(texts), length))
    return pc.or_(pc.or_(words, match(texts, _WHOLE)), ids)


def _names(names: Any) -> Any | None:
    """Names as text, as records have them; None: one has a zero byte, where names of records may end."""
    encoded = names.dictionary_encode()
    found = encoded.dictionary.to_pylist()
    if any(b"\0" in name for name in found):
        return None
    return pa.array([name_text(name) for name in found], pa.string()).take(encoded.indices)
