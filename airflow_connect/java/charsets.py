"""Java's character sets: the names that `Charset.forName` knows, with exactly Java's bytes and replacements.

The table `charsets.json` was recorded from Java 17. For each character set it has the aliases, and one of these: the
Python codec that equals it, the 256 characters of a single-byte set, or the differences between a multi-byte set and
Python's codec. Java replaces invalid bytes with U+FFFD, and characters that cannot be encoded mostly with `?`. The
number of replacements also equals Java's.
"""

from __future__ import annotations

import base64
import codecs
import json
import zlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_REPLACEMENT = "\ufffd"
_BIG_MARK_16, _LITTLE_MARK_16 = codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE
_BIG_MARK_32, _LITTLE_MARK_32 = codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE
# These two drop their byte order mark; the 16-bit ones do not.
_OWN_MARKS = {"UTF-32BE": _BIG_MARK_32, "UTF-32LE": _LITTLE_MARK_32}
_LONGEST_CHARACTER_BYTES = 3
_THREE_BYTES_START = 0x8F
_FIRST_OF_PAIRS = 0x80


class JavaCharset(NamedTuple):
    """A character set.

    Attributes:
        name: Java's name for it.
        decode: text of bytes, as `new String(bytes, charset)`; never fails.
        encode: bytes of a text, as `String.getBytes(charset)`; never fails.
    """

    name: str
    decode: Callable[[bytes], str]
    encode: Callable[[str], bytes]

    def __reduce__(self) -> tuple[Any, ...]:
        return charset, (self.name,)


@cache
def charset(name: str) -> JavaCharset | None:
    """The character set of a name or alias, in any case; None: Java has none, or it is not supported here."""
    known = _names().get(name.lower())
    return None if known is None or "refused" in _table()[known] else _made(known)


def is_java_name(name: str) -> bool:
    """Whether Java has a character set of this name."""
    return name.lower() in _names()


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("charsets.json").read_text("utf-8"))
    return table


@cache
def _names() -> dict[str, str]:
    return {spelling.lower(): name for name, entry in _table().items() for spelling in (name, *entry["aliases"])}


@cache
def _made(name: str) -> JavaCharset:
    if name == UTF_8.name:
        return UTF_8
    if name.startswith("UTF-"):
        return JavaCharset(name, _unicode_decoder(name), _unicode_encoder(name))
    entry = _table()[name]
    if "table" in entry:
        return JavaCharset(name, *_single_byte(entry))
    if "two" in entry:
        multi = _MultiByte(name, entry)
        return JavaCharset(name, multi.decode, multi.encode)
    codec = entry["codec"]
    return JavaCharset(name, lambda data: data.decode(codec, "replace"), lambda text: text.encode(codec, "replace"))


# UTF-8, UTF-16, UTF-32


def _decode_utf_8(data: bytes) -> str:
    return data.decode("utf-8", "java-utf-8")


def _encode_utf_8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


UTF_8 = JavaCharset("UTF-8", _decode_utf_8, _encode_utf_8)


def _utf_8_error(error: UnicodeError) -> tuple[str, int]:
    """Java replaces the bytes of a surrogate together, Python one by one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start = error.object, error.start
    if data[start] != 0xED or not 0xA0 <= int.from_bytes(data[start + 1 : start + 2], "big") <= 0xBF:
        return _REPLACEMENT, error.end
    third = data[start + 2 : start + 3]
    return _REPLACEMENT, start + (3 if third and third[0] & 0xC0 == 0x80 else 2)


def _utf_16_error(error: UnicodeError) -> tuple[str, int]:
    """Java replaces a high surrogate together with the following unit if that is not its low surrogate."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start, at = error.object, error.start, 1 if error.encoding.endswith("le") else 0
    is_high = len(data) >= start + 2 and 0xD8 <= data[start + at] <= 0xDB
    return _REPLACEMENT, min(start + (4 if is_high else 2), len(data))


def _utf_32_error(error: UnicodeError) -> tuple[str, int]:
    """Java accepts single surrogates."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    unit = error.object[error.start : error.start + 4]
    code = int.from_bytes(unit, "little" if error.encoding.endswith("le") else "big")
    is_surrogate = len(unit) == 4 and 0xD800 <= code <= 0xDFFF
    return chr(code) if is_surrogate else _REPLACEMENT, error.start + len(unit)


codecs.register_error("java-utf-8", _utf_8_error)
codecs.register_error("java-utf-16", _utf_16_error)
codecs.register_error("java-utf-32", _utf_32_error)


def _unicode_decoder(name: str) -> Callable[[bytes], str]:
    family = name[:6].lower()
    errors = f"java-{family}"
    if len(name) > len(family):
        codec, own_mark = f"{family}-{name[-2:].lower()}", _OWN_MARKS.get(name, b"")
        return lambda data: data.removeprefix(own_mark).decode(codec, errors)
    big, little = (_BIG_MARK_16, _LITTLE_MARK_16) if family == "utf-16" else (_BIG_MARK_32, _LITTLE_MARK_32)

    def decode(data: bytes) -> str:
        if data.startswith(little):
            return data[len(little) :].decode(f"{family}-le", errors)
        return data.removeprefix(big).decode(f"{family}-be", errors)

    return decode


def _unicode_encoder(name: str) -> Callable[[str], bytes]:
    family = name[:6].lower()
    codec = f"{family}-{name[6:].lower() or 'be'}"
    mark = _BIG_MARK_16 if name == "UTF-16" else b""

    def encode(text: str) -> bytes:
        try:
            encoded = text.encode(codec)
        except UnicodeEncodeError:
            encoded = text.translate(_SURROGATES).encode(codec)
        return mark + encoded if text else b""

    return encode


_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), _REPLACEMENT)

# Others


def _single_byte(entry: dict[str, Any]) -> tuple[Callable[[bytes], str], Callable[[str], bytes]]:
    characters: str = entry["table"]
    missing = bytes.fromhex(entry["unmappable"])
    of_character = {ord(c): bytes([at]) for at, c in reversed(list(enumerate(characters))) if c != _REPLACEMENT}
    of_character.update({ord(c): bytes.fromhex(text) for c, text in entry.get("encode", {}).items()})

    def encode(text: str) -> bytes:
        return b"".join([of_character.get(ord(c), missing) for c in text])

    return lambda data: codecs.charmap_decode(data, "replace", characters)[0], encode


class _MultiByte:
    """A multi-byte character set: Python's codec, and Java's differences from it."""

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self._codec: str = entry["codec"]
        hexadecimal, characters = entry["pairs"]
        pairs = {bytes.fromhex(hexadecimal[4 * at : 4 * at + 4]): c for at, c in enumerate(characters)}
        self._own_bytes = {c: data for data, c in pairs.items()}
        self._own_bytes.update((c, bytes.fromhex(text)) for c, text in entry["encode"].items())
        self._own_text = pairs | {bytes.fromhex(text): c for text, c in entry["decode"].items()}
        self._taken_together = zlib.decompress(base64.b64decode(entry["two"]))
        self._others = str.maketrans(entry["other"])
        self._errors = f"java-{name}"
        self._forced = {bytes.fromhex(text): c for text, c in entry.get("forced", {}).items()}
        codecs.register_error(self._errors, self._on_error)

    def decode(self, data: bytes) -> str:
        text = data.decode(self._codec, self._errors)
        if any(sequence in data for sequence in self._forced):
            text = self._with_forced(data)
        return text.translate(self._others) if self._others else text

    def encode(self, text: str) -> bytes:
        if text.isascii():
            return text.encode(self._codec)
        if self._codec != "euc_kr" and self._own_bytes.keys().isdisjoint(text):
            return text.encode(self._codec, "replace")
        return b"".join(map(self._encode_one, text))

    def _encode_one(self, character: str) -> bytes:
        known = self._own_bytes.get(character)
        if known is None:
            known = character.encode(self._codec, "replace")
            # Python writes some syllables as sequences of their parts; Java does not know these sequences.
            known = known if len(known) <= _LONGEST_CHARACTER_BYTES else b"?"
        return known

    def _on_error(self, error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        start = error.start
        two = error.object[start : start + 2]
        for data in (two, two[:1]):
            if data in self._own_text:
                return self._own_text[data], start + len(data)
        if self._codec == "euc_jp" and two[0] == _THREE_BYTES_START:
            return _REPLACEMENT, min(start + 3, len(error.object))
        number = int.from_bytes(two, "big")
        together = len(two) == 2 and self._taken_together[number >> 3] >> (number & 7) & 1
        return _REPLACEMENT, start + (2 if together else 1)

    def _with_forced(self, data: bytes) -> str:
        """Text with Java's characters for byte sequences that Python decodes differently."""
        parts, at, begin = [], 0, 0
        while at < len(data):
            if data[at] < _FIRST_OF_PAIRS:
                at += 1
                continue
            size = 3 if self._codec == "euc_jp" and data[at] == _THREE_BYTES_START else 2
            sequence = data[at : at + size]
            if sequence in self._forced:
                parts += [data[begin:at].decode(self._codec, self._errors), self._forced[sequence]]
                begin = at + size
            # After an invalid sequence, continue with the next byte.
            at += size if len(sequence.decode(self._codec, self._errors)) == 1 else 1
        return "".join((*parts, data[begin:].decode(self._codec, self._errors)))
