"""Numbers, depths and sizes that once hung or broke a run, for the cases of `cases.py`."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

from airflow_connect.api.schema import DECIMAL

NUMBERS = (
    "0", "-0", "-0.0", "1", "1.9999999999999999", "9007199254740993.0", "1e63", "1E9999999", "-1E9999999", "1E-9999999",
    "1e2147483647", "1e-2147483647", "1e2147483648", "1e99999999999999999999", "1e-99999999999999999999",
    "0e99999999999999999999", "9223372036854775808", "18446744073709551616", "0x1p99999999999", "1f", "NaN", "Infinity",
    "1_0", " 2 ", "\U0001d7cf", "\u0661", "1e\u0663", "9" * 400, "9" * 5000, "9" * 50_000, "0." + "9" * 5000,
    "1e" + "0" * 5000 + "1", "0" * 5000 + "7", "--1", "+", "1.", ".5",
)  # fmt: skip
DEPTHS = (1, 3, 99, 100, 101, 253, 254, 255, 260, 500, 999, 1001, 5000, 100_000)
SCALES = ("0", "2", "-2", "2147483647", "-2147483648", "99999999999", " 2 ", "1_0", "", "9" * 5000)


LONG_TEXTS = (
    '"' + '\\"' * 50_000, '00"' + '\\"' * 20_000, "[" + "1," * 50_000, '{"' + "k" * 60_000 + '":1}',
    '[1,"' + "x" * 50_000,
)  # fmt: skip
SCALARS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")


def number(random: Random) -> str:
    """Text that is, or nearly is, a number."""
    if random.random() < 0.6:
        return random.choice(NUMBERS)
    digits = "".join(random.choices("0123456789", k=random.choice((1, 5, 16, 19, 20, 39, 1000, 1001))))
    exponent = random.choice(("", "", f"e{random.randint(-400, 400)}", f"E+{random.randint(0, 10**12)}"))
    return random.choice(("", "-")) + digits + random.choice(("", ".", ".5", "." + digits)) + exponent


def nested(random: Random, inside: str) -> str:
    """`inside` within lists or maps of JSON, or of nearly JSON."""
    depth = random.choice(DEPTHS)
    opening, closing = random.choice((("[", "]"), ('{"a":', "}"), ("[[", "]]"), ("{1:", "}")))
    return opening * depth + inside + closing * random.choice((depth, depth, depth, depth - 1, 0))


def json_text(random: Random) -> str:
    """A document, most often a valid one."""
    kind = random.random()
    if kind < 0.35:
        return number(random)
    if kind < 0.6:
        return nested(random, random.choice(("", "1", '"x"', number(random))))
    if kind < 0.7:
        return random.choice(LONG_TEXTS)
    members = ",".join(f'"{name}":{number(random)}' for name in ("a", "b"))
    return "{" + members + "}"


def mutated(random: Random, data: bytes) -> bytes:
    """The bytes with some of them changed, cut or repeated."""
    changed = bytearray(data)
    for _ in range(random.randint(0, 4)):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    if random.random() < 0.2:
        del changed[random.randrange(len(changed) + 1) :]
    return bytes(random.choice((b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) + changed)


def deep_value(random: Random) -> Any:
    """Lists or maps around a value."""
    value: Any = scalar(random)
    for _ in range(random.choice([depth for depth in DEPTHS if depth <= 254])):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def scalar(random: Random) -> Any:
    """A value as converters give it: integers of 64 bits, any double, any text, large Decimals."""
    exponent = random.choice((0, 2, -2, 63, 64, -400, 400, 9_999_999, -9_999_999, 2**31 - 1, 1 - 2**31))
    digits = tuple(random.choices(range(10), k=random.choice((1, 3, 20, 40, 5000))))
    return random.choice((
        None, True, 0, 7, -(2**63), 2**63 - 1, 0.0, -0.0, 1e308, 5e-324, float("nan"), float("inf"), "", "x",
        number(random), json_text(random), b"", bytes(8), Decimal((random.randint(0, 1), digits, exponent)),
    ))  # fmt: skip


def schema_text(random: Random) -> str:
    """A Connect schema as JSON."""
    kind = random.choice((*SCALARS, "decimal", "deep"))
    if kind == "decimal":
        parameters = {"scale": random.choice(SCALES)}
        return json.dumps({"type": "bytes", "name": DECIMAL, "version": 1, "parameters": parameters})
    if kind == "deep":
        depth = random.choice(DEPTHS)
        return '{"type":"array","items":' * depth + '{"type":"int64"}' + "}" * depth
    default = f',"default":{number(random)}' if random.random() < 0.1 else ""
    return f'{{"type":"{kind}","optional":true,"version":1{default}}}'
