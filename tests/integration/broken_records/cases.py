"""Broken records, by the configuration that meets them: what fails, in which stage, and what only looks broken."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integration.connectors.files.s3.objects import AVRO_FORMAT, JSON_FORMAT, PARQUET_FORMAT, logical, struct

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PRIMITIVES = "org.apache.kafka.connect.converters"


@dataclass(frozen=True)
class Setup:
    """A configuration and its records.

    Attributes:
        config: keys of the connector.
        good: a record that always arrives; `{n}` stands for its number.
        broken: name to bytes of records that fail.
        odd: name to bytes of records that arrive although they look broken, because Kafka Connect takes them.
        stages: Connect's stage of a broken record, where it is not VALUE_CONVERTER.
        columnar: whether the configuration has a columnar path, which is then tested too.
    """

    config: Mapping[str, str]
    good: Sequence[bytes]
    broken: Mapping[str, bytes]
    odd: Mapping[str, bytes]
    stages: Mapping[str, str]
    columnar: bool


def envelope(schema: Any, payload: Any) -> bytes:
    """A message of JsonConverter with a schema."""
    return json.dumps({"schema": schema, "payload": payload}).encode()


def nested(levels: int, inside: bytes = b"1") -> bytes:
    """Arrays in arrays."""
    return b"[" * levels + inside + b"]" * levels


BROKEN_JSON = {
    "truncated": b'{"n": 1, "text": "ab',
    "truncated number": b'{"n": -',
    "plain text": b"not json",
    "invalid UTF-8": b'{"text": "a\xffb"}',
    "overlong UTF-8": b'{"text": "\xc0\xaf"}',
    "half a surrogate pair as bytes": b'{"text": "\xed\xa0\x80"}',
    "NaN": b'{"n": NaN}',
    "Infinity": b'{"n": -Infinity}',
    "10,000 levels": nested(10_000),
    "10,000 levels of objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "a number of 5,000 digits": b'{"n": ' + b"9" * 5000 + b"}",
    "control character in text": b'{"text": "a\nb"}',
    "binary": bytes(range(256)),
    "compressed": b"\x1f\x8b\x08\x00" + b"\0" * 20,
}
ODD_JSON = {
    "duplicate keys": b'{"n": 1, "n": 2}',
    "an integer beyond 64 bits": b'{"n": 9223372036854775808}',
    "a number beyond a double": b'{"n": 1e400}',
    "half a surrogate pair": b'{"text": "\\ud800"}',
    "text behind the document": b'{"n": 1} and more',
    "byte order mark": b'\xef\xbb\xbf{"n": 1}',
    "leading zeros": b'{"n": 007}',
}

ORDER = struct(("n", "int32"), ("text", "string?"), ("price", {**logical("Decimal", "bytes", scale="2")}))
ONE_HUNDRED = base64.b64encode((10_000).to_bytes(2, "big")).decode()


def order(**changes: Any) -> dict[str, Any]:
    """A payload of the schema ORDER; None removes a member."""
    payload = {"n": 1, "text": "fine", "price": ONE_HUNDRED, **changes}
    return {name: value for name, value in payload.items() if value is not None}


BROKEN_ENVELOPES = {
    "no envelope": b'{"n": 1}',
    "half an envelope": b'{"schema": {"type": "int32"}}',
    "truncated": envelope(ORDER, order())[:-9],
    "unknown type in the schema": envelope({"type": "int33"}, 1),
    "null where required": envelope(ORDER, {**order(), "n": None}),
    "missing where required": envelope(ORDER, order(price=None)),
    "text for a decimal that is not base64": envelope(ORDER, order(price="12.34!")),
    "text where a struct should be": envelope(ORDER, "text"),
    "half a surrogate pair": envelope(ORDER, order(text="a\ud800b")),
    "decimal with another scale": envelope(ORDER, order(price=1.23456)),
    "10,000 levels": b'{"schema":{"type":"string"},"payload":' + nested(10_000) + b"}",
}
ENVELOPE_STAGES = {"half a surrogate pair": "TASK_PUT", "decimal with another scale": "TASK_PUT"}

WITH_CONTENT = {
    "value.converter": JSON_CONVERTER,
    "value.converter.schemas.enable": "true",
    "value.converter.schema.content": json.dumps(struct(("n", "int64"), ("text", "string?"))),
}
BROKEN_CONTENT = {
    "truncated": b'{"n": 1, "text": "ab',
    "invalid UTF-8": b'{"n": 1, "text": "a\xffb"}',
    "null where required": b'{"n": null}',
    "missing where required": b'{"text": "a"}',
    "an array where a struct should be": b"[1]",
    "half a surrogate pair": b'{"n": 1, "text": "\\ud800"}',
    "10,000 levels": nested(10_000),
    "NaN": b'{"n": NaN}',
}

SETUPS = {
    "json to json": Setup(
        {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "false", "format.class": JSON_FORMAT},
        [b'{"n": %d}' % n for n in range(40)],
        BROKEN_JSON,
        ODD_JSON,
        {},
        columnar=True,
    ),
    "schema.content to parquet": Setup(
        {**WITH_CONTENT, "format.class": PARQUET_FORMAT},
        [b'{"n": %d, "text": "fine"}' % n for n in range(40)],
        BROKEN_CONTENT,
        {"a fraction for an integer": b'{"n": 1.5}', "duplicate keys": b'{"n": 1, "n": 2}'},
        {"half a surrogate pair": "TASK_PUT"},
        columnar=True,
    ),
    **{
        f"envelopes to {name}": Setup(
            {
                "value.converter": JSON_CONVERTER,
                "value.converter.schemas.enable": "true",
                "format.class": file_format,
                "schema.compatibility": "NONE",
            },
            [envelope(ORDER, order(n=n)) for n in range(40)],
            BROKEN_ENVELOPES,
            {"an integer beyond 32 bits": envelope(ORDER, order(n=1 << 33))},
            ENVELOPE_STAGES,
            columnar=False,
        )
        for name, file_format in (("avro", AVRO_FORMAT), ("parquet", PARQUET_FORMAT))
    },
    **{
        f"{kind} to json": Setup(
            {"value.converter": f"{PRIMITIVES}.{kind}Converter", "format.class": JSON_FORMAT},
            [n.to_bytes(size, "big") for n in range(40)],
            {"too short": b"\0" * (size - 1), "too long": b"\0" * (size + 1), "empty": b""},
            {},
            {},
            columnar=False,
        )
        for kind, size in (("Short", 2), ("Integer", 4), ("Long", 8), ("Float", 4), ("Double", 8))
    },
}
