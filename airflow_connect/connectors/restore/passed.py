"""Which files were restored: their number is kept with the offset, and a fingerprint of their names.

A restored file may be deleted. Without the fingerprint, one that is deleted and one that comes late would look like no
change at all, if the late one has an older time.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from airflow_connect.counting import plural

_BYTES = 8


def fingerprint(names: Iterable[str], before: int = 0) -> int:
    """Of a set of names, whatever their order; `before`: that of names that belong to it, too."""
    for name in names:
        before ^= int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), "big")
    return before


def text_of(found: int) -> str:
    """As it is kept; the empty set has one, too."""
    return f"{found:0{2 * _BYTES}x}"


def others(names: Iterable[str], passed: int, kept: str) -> tuple[int, bool]:
    """How restored files differ from those that an offset knows.

    Args:
        names: of the files that are there.
        passed, kept: their number and fingerprint, as the offset has them; "": of a release that kept none.

    Returns:
        How many are missing, 0 if there are as many as before or more; and whether there is one that was not there.
    """
    found = list(names)
    is_same = not kept or text_of(fingerprint(found)) == kept
    missing = max(0, passed - len(found))
    return missing, len(found) > passed or (not is_same and not missing)


def told_of_missing(what: str, missing: int) -> str:
    """What deleted files mean."""
    return (
        f"Of {what}, {plural(missing, 'file', 'are')} not there any more that {'was' if missing == 1 else 'were'}"
        " restored. If another file with an older time came meanwhile, it is not restored, and not noticed."
    )
