"""Converts documents to records of the runs topic: versioned JSON, divided into pieces that fit into a Kafka record.

Key:   `["manifest","my-sink",0]`, or with a name `["run","my-sink","<run id>",0]`; the last item numbers
the pieces.
Value: `{"v":1,"of":1,"document":{...}}` for a document in one piece, else
       `{"v":1,"of":3,"sha256":"...","piece":"<part of the JSON text>"}`.

A JSON array as key distinguishes connector `a` from connector `a-b`. All pieces are written in one transaction. The
count and the digest detect other problems: a piece of a longer predecessor, or a topic that was edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from airflow_connect.errors import StateError

VERSION = 1
PIECE_CHARACTERS = 440_000
"""The text is ASCII, and escaping it in JSON at most doubles its length, so a value stays below 900 kB."""

StateRecord = tuple[bytes, bytes | None]
"""Key and value; None is a tombstone."""


def record_key(kind: str, connector: str, piece: int, name: str = "") -> str:
    """Key of one piece of a document."""
    parts: list[str | int] = [kind, connector, name, piece] if name else [kind, connector, piece]
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def encode_document(
    kind: str,
    connector: str,
    document: Mapping[str, Any] | None,
    name: str = "",
    present: Collection[str] = (),
) -> list[StateRecord]:
    """Records that replace a document.

    Args:
        kind: `manifest`, `run`, ...
        document: plain JSON; None deletes it.
        name: of the document, if a connector has several of a kind.
        present: current keys in the topic (`runs_topic.read`); pieces that the new document no longer needs get a
        tombstone.
    """
    values = [] if document is None else _pieces(document)
    keys = [record_key(kind, connector, n, name) for n in range(len(values))]
    records: list[StateRecord] = [(key.encode(), value) for key, value in zip(keys, values, strict=True)]
    extra = {key for key in present if _belongs(key, kind, connector, name)}.difference(keys)
    return records + [(key.encode(), None) for key in sorted(extra)]


def _pieces(document: Mapping[str, Any]) -> list[bytes]:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    if len(text) <= PIECE_CHARACTERS:
        return [f'{{"v":{VERSION},"of":1,"document":{text}}}'.encode()]
    cut = [text[i : i + PIECE_CHARACTERS] for i in range(0, len(text), PIECE_CHARACTERS)]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return [
        json.dumps({"v": VERSION, "of": len(cut), "sha256": digest, "piece": piece}, separators=(",", ":")).encode()
        for piece in cut
    ]


def decode_document(kind: str, connector: str, records: Mapping[str, bytes], name: str = "") -> dict[str, Any] | None:
    """The document in `records` (`runs_topic.read`), or None if there is none.

    Raises:
        StateError: unknown version, missing or foreign pieces, damaged JSON.
    """
    first = records.get(record_key(kind, connector, 0, name))
    if first is None:
        return None
    where = f"{kind} of connector {connector}" + (f" named {name}" if name else "")
    head = _parse(first, where)
    if head["of"] == 1:
        return _document_of(head.get("document"), where)
    pieces = [head]
    for n in range(1, head["of"]):
        value = records.get(record_key(kind, connector, n, name))
        if value is None:
            raise _damaged(where, f"piece {n} of {head['of']} is missing")
        pieces.append(_parse(value, where))
    if any(p["of"] != head["of"] or p.get("sha256") != head.get("sha256") for p in pieces):
        raise _damaged(where, "its pieces belong to different versions of it")
    text = "".join(str(p.get("piece", "")) for p in pieces)
    if hashlib.sha256(text.encode()).hexdigest() != head.get("sha256"):
        raise _damaged(where, "its text does not match its checksum")
    return _document_of(json.loads(text), where)


def document_names(records: Mapping[str, bytes], kind: str) -> list[str]:
    """Names of the documents of a kind, sorted."""
    found = {parts[2] for parts in map(parse_key, records) if parts and parts[0] == kind and len(parts) == 4}
    return sorted(str(name) for name in found)


def parse_key(key: str) -> list[Any]:
    """Parts of one of our keys, or [] for any other key."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return []
    is_ours = (
        isinstance(parts, list)
        and len(parts) in (3, 4)
        and all(isinstance(p, str) for p in parts[:-1])
        and isinstance(parts[-1], int)
    )
    return parts if is_ours else []


def _belongs(key: str, kind: str, connector: str, name: str) -> bool:
    parts = parse_key(key)
    return bool(parts) and parts[:-1] == ([kind, connector, name] if name else [kind, connector])


def _parse(value: bytes, where: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"it is not JSON ({error})") from error
    version = parsed.get("v") if isinstance(parsed, dict) else None
    if version != VERSION:
        raise StateError(
            f"The {where} in the runs topic has version {version!r}; this release reads version {VERSION}.",
            code="state.version",
            suggestion="Run the release that wrote it, or a newer one.",
        )
    of = parsed.get("of")
    if not isinstance(of, int) or isinstance(of, bool) or of < 1:
        raise _damaged(where, f"its number of pieces is {of!r}")
    return dict(parsed)


def _document_of(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _damaged(where, "it is not a JSON object")
    return value


def _damaged(where: str, what: str) -> StateError:
    return StateError(
        f"The {where} in the runs topic is damaged: {what}.",
        suggestion="Inspect the topic with a console consumer (isolation read_committed) before you delete "
        "anything: an open manifest names the staged files of an unfinished run.",
    )
