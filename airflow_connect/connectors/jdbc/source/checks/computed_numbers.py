"""Names queries and views that count their rows for each run: such a number tells of no row whether it is new.

`row_number() OVER (ORDER BY name) AS id` gives a new row the number of an older one, and the older one the next number:
the older row is copied again, and the new one never. So it is with ranks, with a sequence or a variable that the
statement itself moves, and with random numbers. A condition that holds at random leaves out rows before the offset.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.time_functions import conditions, definition
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.statements import without_texts
from airflow_connect.counting import names as list_of

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_COUNTED = re.compile(
    r"\b(row_number|rank|dense_rank|ntile|nextval|lastval|uuid_short|random|rand)\s*\(|(@\w+)\s*:=|\b(next\s+value)\b"
    r"|\b(rownum)\s*\(\s*\)|\b(count|sum)\s*\([^()]*\)\s*over\b",
    re.IGNORECASE,
)
_RANDOM = re.compile(
    r"\b(random|rand|random_normal|setseed|gen_random_uuid|gen_random_bytes|uuid|uuid_short|uuidv[47]|randomblob"
    r"|random_bytes)\s*\(",
    re.IGNORECASE,
)
_SIMPLE_NAME = re.compile(r"[\"`](\w+)[\"`]")
_SELECT = re.compile(r"\bselect\b(?:\s+(?:all|distinct)\b)?", re.IGNORECASE)
_SHOWN_FUNCTIONS = 3
_SHOWN = 200
"""Characters of a name in a note."""


def note_computed_numbers(reading: Reading, opaque: Collection[TableId | None]) -> None:
    """Name those whose incrementing column is such a number, or whose rows are chosen at random.

    Args:
        reading: connected; gets the notes.
        opaque: views, and None for the query.
    """
    config = reading.config
    for table in opaque if config.mode != names.BULK else ():
        column = config.incrementing_column("query" if table is None else table.full_name)
        statement = config.query if table is None else definition(reading, table)
        what = "The query" if table is None else f"The view {table.full_name}"
        if random := sorted(set(random_in_conditions(statement, reading.name))):
            reading.note(
                f"{what} has random values in a condition ({list_of(random, _SHOWN_FUNCTIONS)}). If they decide which"
                " rows it has, a run gets some of the rows, and those that it does not get are NOT copied later: they"
                " are before the offset. Take them out of the condition, or use mode bulk."
            )
        found = counted_by(statement, column, reading.name) if column and config.uses_incrementing else ""
        if found:
            reading.note(
                f"{what} computes the incrementing column {column[:_SHOWN]} with {found}, anew in each run: the same"
                " row may have another number in the next one. Rows are then copied again, and new ones with a number"
                " at or below the offset are NOT copied. Use a column that is stored, or mode bulk."
            )


def counted_by(statement: str, column: str, database: str = "") -> str:
    """The function that gives a column of a statement a number of its own in each run, in lower case; "": none.

    It is looked for in the expressions that have the name of the column (`expression AS name`).

    Args:
        statement: a SELECT.
        column: its name in the result.
        database: as for `without_texts`.
    """
    words = without_texts(_SIMPLE_NAME.sub(r"\1", statement), database=database)
    for alias in re.finditer(rf"(?<=[\s)]){re.escape(column)}\b(?!\s*[.(=])", words, re.IGNORECASE):
        found = _COUNTED.search(words, *_expression_before(words, alias.start()))
        if found:
            return next(name.lower() for name in found.groups() if name)
    return ""


def random_in_conditions(statement: str, database: str = "") -> Iterator[str]:
    """The functions that give random values, from the first condition of a statement on, in lower case."""
    for found in _RANDOM.finditer(conditions(statement, database)):
        yield found[1].lower()


def _expression_before(words: str, end: int) -> tuple[int, int]:
    """Where the expression begins that ends there: after a comma or SELECT that is not in brackets of its own."""
    depth = 0
    for place in range(end - 1, -1, -1):
        if words[place] in "()":
            depth += 1 if words[place] == ")" else -1
        if depth < 0 or (depth == 0 and words[place] == ","):
            return place + 1, end
        select = _SELECT.match(words, place) if depth == 0 and words[place] in "sS" else None
        if select is not None and (place == 0 or not (words[place - 1].isalnum() or words[place - 1] == "_")):
            return select.end(), end
    return 0, end
