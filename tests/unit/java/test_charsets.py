"""Character sets against Java 17: malformed bytes and odd texts one by one, all characters by a digest."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path

import pytest

from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import ConfigError
from airflow_connect.java.charsets import charset

RECORDED = [
    json.loads(line)
    for line in Path(__file__).parents[2].joinpath("data/java_charsets_bytes.jsonl").read_text("utf-8").splitlines()
]
SAMPLES = dict(each for each in RECORDED if isinstance(each, list))
DIGESTS = {each["charset"]: each for each in RECORDED if isinstance(each, dict)}
# Those that differ from Python's codecs most; the others too in a soak round.
EVERY_CHARACTER = DIGESTS if os.environ.get("AIRFLOW_CONNECT_SOAK") == "1" else ("GBK", "EUC-JP", "Shift_JIS", "UTF-32")


def utf_16(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def string_converter(encoding: str) -> StringConverter:
    converter = StringConverter()
    converter.configure({"converter.encoding": encoding})
    return converter


@pytest.mark.parametrize("name", SAMPLES)
def test_any_bytes_and_any_text_are_converted_as_java_converts_them(name: str) -> None:
    converter = string_converter(name)
    for data, text, other, encoded in SAMPLES[name]:
        assert utf_16(converter.to_connect("t", bytes.fromhex(data)).value) == text
        given = bytes.fromhex(other).decode("utf-16-be", "surrogatepass")
        assert (converter.from_connect("t", None, given) or b"").hex() == encoded


@pytest.mark.parametrize("name", EVERY_CHARACTER)
def test_every_character_and_every_pair_of_bytes_is_as_in_java(name: str) -> None:
    java = charset(name)
    assert java is not None
    codes = (*range(0x30000), *range(0x10FF00, 0x110000))
    encoded = "".join(f"{java.encode(chr(code)).hex()}\n" for code in codes)
    assert hashlib.sha256(encoded.encode()).hexdigest() == DIGESTS[name]["encoded"]
    sequences = [bytes([one]) for one in range(256)] + [two.to_bytes(2, "big") for two in range(65_536)]
    decoded = "".join(f"{utf_16(java.decode(data))}\n" for data in sequences)
    assert hashlib.sha256(decoded.encode()).hexdigest() == DIGESTS[name]["decoded"]


@pytest.mark.parametrize(
    "name",
    ["utf-7", "unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined", "utf_8", "utf-8-sig", "mbcs",
     "rot13", "hex", "Big5-HKSCS", "GB18030", "ISO-2022-JP"],
)  # fmt: skip
def test_name_that_java_lacks_or_that_is_not_supported_is_refused_by_key(name: str) -> None:
    with pytest.raises(ConfigError, match="Use Java's name of a character set") as caught:
        string_converter(name)
    assert caught.value.config_path == "converter.encoding"


def test_texts_of_the_usual_accidents() -> None:
    assert string_converter("UTF-32").from_connect("t", None, "a") == b"\0\0\0a"
    assert string_converter("UTF-16").from_connect("t", None, "") == b""
    for name, text in (("GBK", "€"), ("EUC-JP", "\uff5e—"), ("Shift_JIS", "—"), ("IBM1047", "a\nb"), ("latin1", "é")):
        converter = string_converter(name)
        assert converter.to_connect("t", converter.from_connect("t", None, text)).value == text


def test_character_set_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(charset("gbk"))) == charset("GBK")
