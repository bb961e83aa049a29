"""Finds where a statement takes a point in time for a time of the session, or the other way round.

The session's zone is UTC here. MySQL and MariaDB make a DATETIME of a TIMESTAMP with which they compute
(`changed + INTERVAL 1 DAY`), or a text (`CONCAT(changed)`): its time is that of UTC then. They and PostgreSQL take a
text, or a column without a zone, that is compared with a point in time for a time of the session.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from airflow_connect.connectors.jdbc.source.settings.statements import without_texts

_SIMPLE_NAME = re.compile(r"[`\"](\w+)[`\"]")
_WITH_ZONE = re.compile(r"'[^']*:\d\d(?:\.\d+)?\s*(?:[+-]\d\d(?::?\d\d){0,2}|[A-Z_]+(?:/[A-Z_]+)*)'", re.IGNORECASE)
"""A text that says in which zone its time is."""
_TEXT = r"(?:(?:timestamp|date)\s*)?(?<!zone )\x01"
_OPERATOR = r"\s*(?:<=>|<>|!=|<=|>=|=|<|>)\s*"
_LISTS = r"\s+(?:not\s+)?(?:between|like|in)\b\s*\(?\s*"
_SIGNS = ("+", "-")
_SUBQUERY = re.compile(r"\(\s*select\b", re.IGNORECASE)
_KEEP = set(re.findall(
    r"\w+",
    "max min coalesce ifnull nvl nvl2 if nullif greatest least any_value first_value last_value nth_value lag lead case"
    " when then else and or not where on having",
))  # fmt: skip
"""Functions that return one of their arguments as it is, and words before a bracket that groups."""
_NEUTRAL = set(re.findall(r"\w+", "count over in exists values using by as from join convert_tz timezone"))
"""Functions that do not depend on the zone of the session, and words before lists."""
_COMPARISON = "a comparison with a {}"


def session_times(
    statement: str, database: str, zoned: Collection[str], plain: Collection[str], known: Collection[str]
) -> Iterator[str]:
    """What of a statement depends on the zone of the session: names of functions, operators, or words for them.

    Args:
        statement: of a query or a view.
        database: SQLAlchemy's name of it.
        zoned: names of columns that hold points in time.
        plain: names of columns with a date or a time without a zone.
        known: functions that are not looked for, in small letters.
    """
    words = without_texts(_SIMPLE_NAME.sub(r"\1", _WITH_ZONE.sub("0", statement)), database=database)
    point, local = _column(zoned), _column(set(plain) - set(zoned))
    if not zoned:
        return
    if re.search(rf"{point}(?:{_OPERATOR}|{_LISTS}){_TEXT}|{_TEXT}{_OPERATOR}{point}", words, re.IGNORECASE):
        yield _COMPARISON.format("text")
    if plain and re.search(
        rf"{point}(?:{_OPERATOR}|{_LISTS}){local}|{local}(?:{_OPERATOR}|{_LISTS}){point}", words, re.IGNORECASE
    ):
        yield _COMPARISON.format("column without a zone")
    if database == "mysql":
        for found in re.finditer(point, words, re.IGNORECASE):
            yield from _operations(words, found.start(), found.end(), known)
    elif plain:
        zone = r"(?:timestamptz|timestamp\s*(?:\(\d\)\s*)?with\s+time\s+zone)"
        if re.search(
            rf"(?:{local}|\({local}\))\s*::\s*{zone}|\bcast\s*\(\s*{local}\s+as\s+{zone}", words, re.IGNORECASE
        ):
            yield "timestamptz"


def _column(names: Collection[str]) -> str:
    """An expression for one of some columns, with or without a table, but not for a function of its name."""
    listed = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return rf"(?<![\w.])(?:\w+\.){{0,2}}(?:{listed})\b(?!\s*[(.])"


def _operations(words: str, begin: int, end: int, known: Collection[str]) -> Iterator[str]:
    """The operator or the function that gets a column, also by way of functions that return it as it is."""
    while True:
        for side in (words[end:].lstrip()[:1], words[:begin].rstrip()[-1:]):
            if side in _SIGNS:
                yield side
                return
        opening = _bracket(words, begin - 1, -1)
        if opening < 0 or _SUBQUERY.match(words, opening):
            return
        name = _last_word(words[:opening])
        if name and name not in _KEEP:
            yield from () if name in _NEUTRAL or name in known else (name,)
            return
        begin, end = len(words[:opening].rstrip()) - len(name), _bracket(words, end, 1) + 1
        if not end:
            return


def _last_word(text: str) -> str:
    """In small letters; "": it does not end with one."""
    text = text.rstrip()
    begin = len(text)
    while begin and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
        begin -= 1
    return text[begin:].lower()


def _bracket(words: str, place: int, step: int) -> int:
    """The place of the bracket around a place, to the left or to the right of it; -1: there is none."""
    depth, outwards = 0, "(" if step < 0 else ")"
    while 0 <= place < len(words):
        if words[place] in "()":
            depth += -1 if words[place] == outwards else 1
        if depth < 0:
            return place
        place += step
    return -1
