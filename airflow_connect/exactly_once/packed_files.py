"""Compact text for many staged files: in columns, compressed, as base64.

10,000 files of an S3 sink take 3.3 MB as JSON objects and 0.9 MB packed. Half of that is ids and digests from the
store, which do not compress. A few files stay readable JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import StateError

FEW = 20


def to_json(files: Sequence[StagedFile]) -> list[dict[str, Any]] | str:
    """JSON form: one object per file, or one text for more than `FEW` files."""
    if len(files) <= FEW:
        return [file.to_json() for file in files]
    rows = [asdict(file) for file in files]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    text = json.dumps(columns, separators=(",", ":"), ensure_ascii=True)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def from_json(data: list[dict[str, Any]] | str) -> tuple[StagedFile, ...]:
    """Inverse of `to_json`.

    Raises:
        StateError: the text is damaged.
    """
    if not isinstance(data, str):
        return tuple(StagedFile.from_json(row) for row in data)
    try:
        columns = json.loads(zlib.decompress(base64.b64decode(data, validate=True)))
        rows = zip(*columns.values(), strict=True)
        return tuple(StagedFile.from_json(dict(zip(columns, row, strict=True))) for row in rows)
    except (binascii.Error, zlib.error, ValueError, TypeError, AttributeError) as error:
        raise StateError(
            f"The list of staged files in a manifest is damaged: {error}.",
            suggestion="Inspect the topic with a console consumer (isolation read_committed) before you delete "
            "anything: an open manifest names the staged files of an unfinished run.",
        ) from error
