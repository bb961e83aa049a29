"""Values that converters have been wrong about before, and others."""

from __future__ import annotations

from random import Random

TEXTS = (
    "", "a", "b", " ", "é", "u\u0308", "\U0001f600", "x" * 300, "a\nb", '"', "\\", "null", "true", "0", "-0", "1.0",
    "1E5", "2020-01-01", "a/b", "a=b", "..", "\u2028", "\u0000", "\x7f", "\ufeff", "NaN", "Infinity", "01", "{}", "[]",
    "1e400",
)  # fmt: skip
INTEGERS = (
    0, 1, -1, 127, 128, -128, -129, 255, 32767, 32768, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63),
    1_700_000_000_000, 86_400_000, 86_399_999, 253_402_300_800_000, -62_135_596_800_001,
)  # fmt: skip
FLOATS = (
    0.0, -0.0, 1.0, -1.5, 1e5, 1e7, 1e-3, 9.999e-4, 1e16, 1e21, 1e22, 5e-324, 1.7976931348623157e308, 1e-45, 0.1,
    123456789.125, 16777217.0, 2.0**63, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
BYTES = (b"", b"\0", b"a", b"\xff", b"\x00\x80", b"\x7f", b"\x80", bytes(range(20)), b"x" * 50)
DAYS = (0, 1, -1, 19_000, -719_528, -719_529, 2_932_896, 2_932_897, -141_427, -141_428)
DECIMALS = (0, 1, -1, 127, 128, -128, 12_345, -99_999, 10**20)
NAMES = ("id", "name", "at", "ok", "inner", "v", "w", "a_b", "Z", "ts")


def text(r: Random) -> str:
    return r.choice(TEXTS) if r.random() < 0.7 else "".join(r.choices('abzéü0"\\ /=\n', k=r.randrange(6)))


def integer(r: Random, bits: int) -> int:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    fitting = [number for number in INTEGERS if low <= number <= high]
    return r.choice(fitting) if r.random() < 0.5 else r.randint(max(low, -1000), min(high, 100_000))


def floating(r: Random) -> float:
    return r.choice(FLOATS) if r.random() < 0.6 else r.uniform(-1e6, 1e6)


def unscaled(r: Random) -> bytes:
    """A Decimal as Java writes it, now and then with a byte more than it needs."""
    number = r.choice(DECIMALS)
    data = number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
    return data if r.random() < 0.9 else data[:1].translate(bytes([0] * 128 + [255] * 128)) + data


def broken(r: Random, data: bytes) -> bytes:
    """The message with a fault, which may make another valid one of it."""
    at = r.randrange(len(data) + 1)
    return r.choice(
        [
            b"", b"null", data[:at], data + r.choice([b"\0", b" ", b"\n{}", b"x"]), b"\xef\xbb\xbf" + data,
            data[:at] + bytes([r.randrange(256)]) + data[at + 1 :], data[:at] + data[at + 1 :], b"\1" + data[1:],
            data[:1] + b"\0\0\0\x63" + data[5:],
        ]
    )  # fmt: skip
