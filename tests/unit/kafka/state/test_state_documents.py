from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import StateError
from airflow_connect.kafka.state import state_documents
from airflow_connect.kafka.state.state_documents import decode_document, document_names, encode_document, record_key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def applied(records: list[tuple[bytes, bytes | None]], to: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """What a compact topic holds after `records`."""
    held = dict(to or {})
    for key, value in records:
        if value is None:
            held.pop(key.decode(), None)
        else:
            held[key.decode()] = value
    return held


@given(st.dictionaries(st.text(), JSON, max_size=5), st.dictionaries(st.text(), JSON, max_size=5))
def test_documents_of_any_size_replace_each_other(first: dict[str, Any], second: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_documents, "PIECE_CHARACTERS", 9)
        held = applied(encode_document("manifest", "c", first))
        held = applied(encode_document("manifest", "c", second, present=held), held)
        assert decode_document("manifest", "c", held) == second
        assert all(json.loads(value)["v"] == 1 for value in held.values())
        assert applied(encode_document("manifest", "c", None, present=held), held) == {}


def test_encode_document_of_a_small_document_stays_readable() -> None:
    assert encode_document("run", "c", {"a": "ü"}, name="r1") == [
        (b'["run","c","r1",0]', b'{"v":1,"of":1,"document":{"a":"\\u00fc"}}')
    ]


def test_encode_document_of_quotes_and_backslashes_stays_below_900_kb() -> None:
    records = encode_document("manifest", "c", {"worst": '"\\' * 700_000})
    assert len(records) > 1
    assert max(len(value or b"") for _, value in records) < 900_000


def test_decode_document_ignores_other_connectors_and_names() -> None:
    held = applied(encode_document("run", "a-b", {"x": 1}) + encode_document("run", "a", {"x": 2}, name="b"))
    assert decode_document("run", "a", held) is None
    assert decode_document("run", "a", held, name="b") == {"x": 2}
    assert document_names({**held, "not json": b""}, "run") == ["b"]


@pytest.fixture
def long_document(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setattr(state_documents, "PIECE_CHARACTERS", 10)
    return applied(encode_document("manifest", "c", {"text": "0123456789" * 3}))


@pytest.mark.parametrize(
    ("piece", "value", "message"),
    [
        (1, None, "piece 1 of 5 is missing"),
        (1, b"{", "not JSON"),
        (1, b'{"v":1,"of":5,"sha256":"other","piece":"x"}', "different versions"),
        (0, b'{"v":1,"of":"5"}', "number of pieces"),
        (0, b'{"v":1,"of":0}', "number of pieces"),
        (0, b'{"v":1,"of":1,"document":7}', "not a JSON object"),
        (0, b'{"v":2}', "version 2"),
        (0, b"[]", "version None"),
    ],
)
def test_decode_document_of_damaged_pieces_says_what_is_wrong(
    long_document: dict[str, bytes], piece: int, value: bytes | None, message: str
) -> None:
    key = record_key("manifest", "c", piece)
    damaged = {k: v for k, v in long_document.items() if k != key} | ({key: value} if value is not None else {})
    with pytest.raises(StateError, match=message):
        decode_document("manifest", "c", damaged)


def test_decode_document_with_a_changed_text_fails_its_checksum(long_document: dict[str, bytes]) -> None:
    key = record_key("manifest", "c", 2)
    changed = {**long_document, key: long_document[key].replace(b'"piece":"', b'"piece":"x')}
    assert changed != long_document
    with pytest.raises(StateError, match="checksum"):
        decode_document("manifest", "c", changed)
