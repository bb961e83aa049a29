"""How the literals of `values/row_text.py` are made of one column of PostgreSQL, by its type.

`values` has what psycopg returns on the row path, which defines the literals. `parts` has the same literals, faster, as
`literals.py` describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from airflow_connect.connectors.jdbc.source.arrow import literals
from airflow_connect.connectors.jdbc.source.arrow.fields import limits_of
from airflow_connect.connectors.jdbc.source.values.columns import INTEGERS, Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import DAY_US
from airflow_connect.connectors.jdbc.source.values.out_of_range import Beyond

Load = Callable[[str], Any]
"""From the text that the server sends of a value to the value that psycopg makes of it."""

AS_SENT = "CASE WHEN {0} IS NOT DISTINCT FROM NULL THEN NULL ELSE format('%s', {0}) END"
"""The text that the server sends of a value. A cast has another one of some types, such as 127.0.0.1/32."""
AS_SENT_IF_BEYOND = "CASE WHEN {0} > '9999-12-30' OR {0} < '0001-01-03' THEN format('%s', {0}) END"
"""The same, of dates and times that Python may not have."""
_MIDNIGHT = Beyond(is_above=True, text="24:00:00")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (also of local times)
_SENT_NAMES = frozenset({"timetz", "xml"})
"""Types whose fields are read in another form."""


class TextColumn(Protocol):
    """One column.

    Attributes:
        expression: what else is selected of it, with `{0}` for its quoted name; "": nothing.
    """

    expression: str

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """What psycopg returns.

        Args:
            array: of the field; None: the column is not a field.
            texts: of `expression`; None: there is none.
        """

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """The literals of these values."""


def text_column(column: Column, is_field: bool, load: Load) -> TextColumn:
    """How a column's literals are made.

    Args:
        column: of a table.
        is_field: whether it is selected as `fields.py` says; False: it is left out.
        load: for its type.
    """
    kind, name = column.kind, column.type_name
    if not is_field or name in _SENT_NAMES or kind is Kind.FLOAT32:
        return _Loaded(load)
    if kind is Kind.NUMERIC or name == "money":  # money is read as a numeric on both paths
        return _Decimals()
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT):
        return _Moments(kind, load)
    if kind is Kind.TIME:
        return _Times()
    if kind in INTEGERS:
        return _Plain(literals.of_integers)
    if kind is Kind.BOOLEAN:
        return _Plain(literals.of_booleans)
    return _Plain(literals.of_texts if kind in (Kind.STRING, Kind.BIT_TEXT) else None)


class _Plain:
    """Values that Arrow's are."""

    expression = ""

    def __init__(self, parts: Callable[[Any], literals.Parts] | None) -> None:
        self._parts = parts

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """As they are."""
        found: list[Any] = array.to_pylist()
        return found

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """Fast, or one by one for bytes and floats."""
        return _literals_of(array.to_pylist()) if self._parts is None else self._parts(array)


class _Loaded:
    """Values that psycopg makes of the server's texts."""

    expression = AS_SENT

    def __init__(self, load: Load) -> None:
        self._load = load

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """One by one."""
        return [None if text is None else self._load(text) for text in texts.to_pylist()]

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """One by one."""
        return _literals_of(self.values(array, texts))


class _Decimals:
    """Exact numbers, of which the field has the text."""

    expression = ""

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """One by one."""
        return [None if text is None else Decimal(text) for text in array.to_pylist()]

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """Fast."""
        return literals.of_numbers(array, lambda text: repr(None if text is None else Decimal(text)))


class _Moments:
    """Dates, and dates with times."""

    expression = AS_SENT_IF_BEYOND

    def __init__(self, kind: Kind, load: Load) -> None:
        self._kind, self._load = kind, load
        self._zone = load("2000-01-01 00:00:00+00").tzinfo if kind is Kind.INSTANT else None

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """One by one."""
        numbers, places, found = self._numbers(array, texts)
        is_date, unit = self._kind is Kind.DATE, DAY_US if self._kind is Kind.DATE else 1
        moments = [_EPOCH + timedelta(microseconds=number * unit) for number in numbers.tolist()]
        values: list[Any] = [moment.date() if is_date else moment.replace(tzinfo=self._zone) for moment in moments]
        for place, value in zip(places.tolist(), found, strict=True):
            values[place] = value
        for place in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[place] = None
        return values

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """Fast."""
        numbers, places, found = self._numbers(array, texts)
        beyond = [repr(value) for value in found]
        if self._kind is Kind.DATE:
            return literals.of_dates(numbers, places, beyond, array)
        return literals.of_timestamps(numbers, "" if self._zone is None else repr(self._zone), places, beyond, array)

    def _numbers(self, array: Any, texts: Any) -> tuple[Any, Any, list[Any]]:
        """Days or microseconds, 0 for null and for what Python has not; the places of the latter, and their values."""
        whole = array.cast(pa.int32()).cast(pa.int64()) if self._kind is Kind.DATE else array.cast(pa.int64())
        numbers = (whole.fill_null(0) if whole.null_count else whole).to_numpy()
        least, most = limits_of(self._kind)
        places = np.flatnonzero((numbers < least) | (numbers > most))
        if not len(places):
            return numbers, places, []
        numbers = numbers.copy()
        numbers[places] = 0
        return numbers, places, [self._load(text) for text in texts.take(pa.array(places)).to_pylist()]


class _Times:
    """Times of a day without a zone."""

    expression = ""

    def values(self, array: Any, texts: Any) -> Sequence[Any]:
        """One by one."""
        return [self._time(micros) for micros in array.cast(pa.int64()).to_pylist()]

    def parts(self, array: Any, texts: Any) -> literals.Parts:
        """Fast."""
        micros = array.cast(pa.int64()).fill_null(0).to_numpy()
        places = np.flatnonzero(micros >= DAY_US)
        return literals.of_times(micros % DAY_US, places, [repr(_MIDNIGHT)] * len(places), array)

    def _time(self, micros: int | None) -> Any:
        if micros is None or micros >= DAY_US:
            return None if micros is None else _MIDNIGHT
        return (_EPOCH + timedelta(microseconds=micros)).time()


def _literals_of(values: Sequence[Any]) -> literals.Parts:
    return [pa.array([repr(value) for value in values], pa.string())]
