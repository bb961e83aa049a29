"""Random values of the types of PostgreSQL that the JDBC source copies."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
MOMENTS = st.datetimes()
OFFSETS = st.integers(-15 * 3600, 15 * 3600).map(lambda seconds: dt.timezone(dt.timedelta(seconds=seconds)))
POSTGRESQL_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "oid": st.integers(0, (1 << 32) - 1),
    "real": st.floats(width=32),
    "double precision": st.floats(),
    "money": st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents).scaleb(-2)),
    "numeric(38,10)": st.decimals(-(10**28) + 1, 10**28 - 1, places=10),
    "numeric(60,20)": st.decimals(-(10**30), 10**30, places=20),
    "numeric(4)": st.integers(-9999, 9999),
    "numeric(18)": st.integers(1 - 10**18, 10**18 - 1),
    "numeric(12,2)": st.decimals(-(10**9), 10**9, places=2),
    "numeric": st.integers(-(10**50), 10**50),
    "char(3)": st.text("ab é", max_size=3),
    "text": TEXT,
    "varchar": TEXT,
    "json": st.lists(st.integers(), max_size=2).map(str),
    "jsonb": st.lists(st.integers(), max_size=2).map(str),
    "uuid": st.uuids(),
    "mood": st.sampled_from(["sad", "glad"]),
    "short": st.integers(1, 30000),
    "bytea": st.binary(max_size=10),
    "bit(1)": st.text("01", min_size=1, max_size=1),
    "bit(8)": st.text("01", min_size=8, max_size=8),
    "bit(12)": st.text("01", min_size=12, max_size=12),
    "date": st.dates(),
    "time": st.times(),
    "timetz": st.times(timezones=OFFSETS),
    "timestamp": MOMENTS,
    "timestamptz": MOMENTS.filter(lambda moment: 2 < moment.year < 9998),
}
"""Values of every type that is copied."""


def placeholder(kind: str) -> str:
    """The parameter of psycopg for a value of a type."""
    return f"%s::{'text::' if kind.startswith('bit') or kind == 'money' else ''}{kind}"
