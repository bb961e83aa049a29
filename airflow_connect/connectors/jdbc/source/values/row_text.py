r"""The text of a row by which it is recognised: hashes of it are kept in offsets, so it must never change.

It is what Python's `repr` makes of the tuple of the driver's values, in UTF-8, in the order of the columns of the
result. Columns that are left out are in it, too. By type:

| value | text |
|---|---|
| null | `None` |
| boolean | `True`, `False` |
| whole number | its digits: `-12` |
| float | the shortest digits that are the same double: `0.1`, `-0.0`, `1e+20`, `nan`, `inf` |
| `real` of PostgreSQL | the double nearest to the text that the server sends |
| exact number | `Decimal('12.50')`, with its scale; from `Decimal('1E-7')` on with an exponent; `Decimal('NaN')` |
| text, json, uuid, enum, bits | a literal of Python: `'it'`, `"it's"`, with escapes for what is not printable |
| bytes | `b'\x00a'` |
| date | `datetime.date(2026, 1, 31)` |
| time | `datetime.time(12, 30)`; a zone as `tzinfo=datetime.timezone.utc` |
| timestamp | `datetime.datetime(2026, 1, 31, 12, 30, 0, 5)`; zeros at the end are left out, but not minutes |
| date or time that Python has not | `Beyond(is_above=True, text='infinity')`, with the database's text |
| other types of PostgreSQL | the `repr` of what psycopg makes of them: `[1, None]`, `IPv4Address('127.0.0.1')` |

`connectors/jdbc/source/arrow/texts.py` makes the same bytes of columns of Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

DIGEST_BYTES = 16
"""Size of a hash of rows, BLAKE2b."""


def row_text(row: Sequence[Any]) -> bytes:
    """The bytes of a row of the driver's values that are hashed; see above."""
    return repr(tuple(row)).encode("utf-8", "surrogatepass")


def row_digest(row: Sequence[Any]) -> bytes:
    """The hash of one row, as the look-back keeps it."""
    return blake2b(row_text(row), digest_size=DIGEST_BYTES).digest()
