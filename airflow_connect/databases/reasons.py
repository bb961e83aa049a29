"""The words of a database about a failure, as messages show them: without the statement and without values of rows."""

from __future__ import annotations

import re
from typing import Any

LONGEST_REASON = 500
NO_VALUE = "(value not shown)"
_QUOTED = r"""(?:"(?:[^"]|"")*"|'(?:[^'\\]|\\.|'')*')(?:\.\.\.)?"""
_UNDOUBLED = r"""(?:".*"|'.*')(?:\.\.\.)?"""
"""A value between quotes as PostgreSQL writes it: quotes in it are not doubled."""
_MYSQL_VALUES = (
    re.compile(r"(?<=Duplicate entry ).*(?= for key )"),
    re.compile(r"(?i)(?<=value: ).*(?= for (?:column|function) )"),
    re.compile(r"(?i)(?<=value: )'.*'"),
    re.compile(r"(?<=use near ).*(?= at line \d+$)"),
    re.compile(r"(?<=out of range in ).*"),
    re.compile(r"(?<=character string: ).*"),
    re.compile(r"(?<=no partition for value ).*"),
    re.compile(r"(?<=convert string )'.*'(?= from )"),
    re.compile(r"(?i)(?<=value )'.*'(?= (?:cannot|can't|in |for |is ))"),
)
_POSTGRESQL_VALUES = (
    re.compile(r"(?<=: )[\"'].*"),
    re.compile(r"(?<=: )0x[0-9a-f]{2}.*"),
    re.compile(r"(?<=byte sequence )0x[0-9a-fx ]+(?= in encoding )"),
    re.compile(rf"(?<=value ){_UNDOUBLED}(?= (?:is|out|for))"),
    re.compile(rf"^{_UNDOUBLED}(?= is (?:out of range|not a valid) )"),
    re.compile(rf"(?<=unit ){_UNDOUBLED}(?= not (?:recognized|supported))"),
    re.compile(rf"(?<=symbol ){_UNDOUBLED}(?= found while)"),
    re.compile(rf"(?<=at or near ){_UNDOUBLED}(?= of jsonpath)"),
    re.compile(rf"(?<=encoding name ){_UNDOUBLED}"),
    re.compile(r"(?<=too large for encoding: )\d+"),
    re.compile(r"(?<=^index )-?\d+(?= out of valid range)"),
    re.compile(rf"(?<=time zone ){_UNDOUBLED}(?= not recognized)"),
    re.compile(r"(?<=out of range: ).*|(?<=: )\d+-\d.*"),
    re.compile(rf"(?<=literal: ){_UNDOUBLED}"),
)
_TRANSLATED_VALUES = (
    re.compile(r"""(?<=: )["'].*|(?<=[:\uff1a])["'].*|».*«|«.*»|„.*[“”]|“.*”|「.*」"""),
    re.compile(r"""".*"|'.*'"""),
    re.compile(r"(?<=: )[^:]*\d.*|(?<![A-Za-z0-9_(,.])[-+]?(?:0x[0-9a-f]+|\d[\d.:eE+-]*)"),
)
"""Where those of PostgreSQL may have them in another language, whose words are not known: quoted, after a colon, and
numbers, except those of types such as numeric(5,2)."""
_SQLITE_VALUES = (re.compile(r"(?<= with text ).*"), re.compile(r"(?<=path error near ).*"))
"""Where messages have values of rows: src/backend/utils/adt of PostgreSQL, sql/share/errmsg-utf8.txt of MariaDB,
share/messages_to_clients.txt of MySQL, Modules/_sqlite/cursor.c of Python."""


def reason_of(error: BaseException) -> str:
    """The driver's own words, in one line, without the statement and without values of rows.

    The words of a trigger are repeated as they are.
    """
    original = getattr(error, "orig", None) or error
    if isinstance(original, UnicodeEncodeError):  # Its text has the character.
        return "a text has half of a surrogate pair, which UTF-8 does not have"
    arguments: tuple[object, ...] = tuple(getattr(original, "args", ()))
    primary = getattr(getattr(original, "diag", None), "message_primary", None)
    if len(arguments) == 2 and isinstance(arguments[0], int):  # PyMySQL: number and text
        text = _without_values(_one_line(str(arguments[1])), _MYSQL_VALUES, is_own=arguments[0] == _SIGNAL)
        text = f"{text} ({arguments[0]})"
    elif primary:  # PostgreSQL. The rest repeats the statement (LINE), or the row (DETAIL, CONTEXT).
        is_own = getattr(original, "sqlstate", None) == _RAISE or is_raised(original)
        text = _without_values(_one_line(primary), _postgresql_values(original, primary), is_own=is_own)
    elif type(original).__module__.startswith("adbc_driver_manager"):  # The same of libpq, in one text.
        first = _MORE_LINES.split(str(original))[0]
        text = _without_values(_one_line(first), _postgresql_values(original, first), is_own=False)
    else:
        text = _one_line(str(original)) or type(original).__name__
        if type(original).__module__ == "sqlite3":
            text = _without_values(text, _SQLITE_VALUES, is_own=False)
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "..."


_MORE_LINES = re.compile(r"\n[^\S\n]*+[^\s:]++(?: ?\d+)? ?:|\bQuery was:")
"""Labels such as `LINE 1:`, `DETAIL:` and `CONTEXT:`, in any language."""
_ENGLISH = re.compile(r"\b(?:ERROR|FATAL|PANIC):")
_DATA_EXCEPTION = "22"
_SIGNAL, _RAISE, _RAISING = 1644, "P0001", "exec_stmt_raise"
"""Errors of triggers."""


def is_raised(original: Any) -> bool:
    """Whether a function of PostgreSQL has raised the error by RAISE, which may give it any SQLSTATE."""
    return getattr(getattr(original, "diag", None), "source_function", None) == _RAISING


def _postgresql_values(original: Any, text: str) -> tuple[re.Pattern[str], ...]:
    """Where a message of PostgreSQL may have values: `lc_messages` of the server says in which language it is.

    Only a superuser may choose another one. In messages of data exceptions (class 22) of another language, all that
    looks like a value is hidden, because it is not known what is one; other messages have the names of columns there.
    """
    if not str(getattr(original, "sqlstate", None) or _DATA_EXCEPTION).startswith(_DATA_EXCEPTION):
        return _POSTGRESQL_VALUES
    diagnosis = getattr(original, "diag", None)
    if diagnosis is None:
        is_english = _ENGLISH.search(text) is not None
    else:
        is_english = getattr(diagnosis, "severity", None) == getattr(diagnosis, "severity_nonlocalized", None)
    # Spanish has the word ERROR, too.
    if is_english and re.sub(_QUOTED, "", text).isascii():
        return _POSTGRESQL_VALUES
    return _TRANSLATED_VALUES


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without_values(text: str, values: tuple[re.Pattern[str], ...], *, is_own: bool) -> str:
    if not is_own:
        for pattern in values:
            text = pattern.sub(NO_VALUE, text)
    return text


def without_words(error: BaseException) -> str:
    """What can be said of a refused statement that must not be shown."""
    original: Any = getattr(error, "orig", None) or error
    code = getattr(original, "sqlstate", None) or getattr(original, "sqlite_errorname", None)
    code = code or next((n for n in getattr(original, "args", ()) if isinstance(n, int)), None)
    named = f" {code}" if isinstance(code, (str, int)) else ""
    return (
        f"it reported the error{named}, whose words are not shown because they may have parts of query.masked; the log"
        " of the database has them"
    )
