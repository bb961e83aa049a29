r"""Java's names of character classes: `\p{...}`, `\d`, `\w` and their like.

Source: documentation of java.util.regex.Pattern and java.lang.Character (Java 17).
"""

from __future__ import annotations

import re

from airflow_connect.java.patterns.char_sets import EVERYTHING, LAST, CharSet

HORIZONTAL = CharSet.of(
    (9, 9), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
VERTICAL = CharSet.of((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
LINE_ENDS = CharSet.of((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))

_DIGIT = CharSet.of((0x30, 0x39))
_LOWER = CharSet.of((0x61, 0x7A))
_UPPER = CharSet.of((0x41, 0x5A))
_ALPHA = _LOWER.union(_UPPER)
_SPACE = CharSet.of((9, 0x0D), (0x20, 0x20))
_WORD = _ALPHA.union(_DIGIT).union(CharSet.chars(0x5F))
_HEX = _DIGIT.union(CharSet.of((0x41, 0x46), (0x61, 0x66)))
_GRAPH = CharSet.of((0x21, 0x7E))

_CATEGORIES = frozenset(
    [f"L{kind}" for kind in "ultmo"]
    + [f"M{kind}" for kind in "nec"]
    + [f"N{kind}" for kind in "dlo"]
    + [f"Z{kind}" for kind in "slp"]
    + [f"C{kind}" for kind in "cfosn"]
    + [f"P{kind}" for kind in "dsecoif"]
    + [f"S{kind}" for kind in "mcko"]
    + list("LMNZCPS")
)
_CASED = CharSet.properties("Lu", "Ll", "Lt")
_UNICODE_SPACE = CharSet.properties("Z").union(CharSet.of((9, 0x0D), (0x85, 0x85)))
_UNICODE_BLANK = CharSet.properties("Zs").union(CharSet.chars(9))
_UNICODE_GRAPH = CharSet.properties("Z", "Cc", "Cs", "Cn").negated()
_UNICODE_WORD = CharSet.properties("Alphabetic", "M", "Nd", "Pc").union(CharSet.of((0x200C, 0x200D)))
_IGNORABLE = CharSet.properties("Cf").union(CharSet.of((0, 8), (0x0E, 0x1B), (0x7F, 0x9F)))
_NONCHARACTERS = CharSet.of((0xFDD0, 0xFDEF), *((at | 0xFFFE, at | 0xFFFF) for at in range(0, LAST, 0x10000)))

_NAMED = {
    "L1": CharSet.of((0, 0xFF)),
    "LC": _CASED,
    "LD": CharSet.properties("L", "Nd"),
    "all": EVERYTHING,
    "ASCII": CharSet.of((0, 0x7F)),
    "Alnum": _ALPHA.union(_DIGIT),
    "Alpha": _ALPHA,
    "Blank": CharSet.chars(9, 0x20),
    "Cntrl": CharSet.of((0, 0x1F), (0x7F, 0x7F)),
    "Digit": _DIGIT,
    "Graph": _GRAPH,
    "Lower": _LOWER,
    "Print": CharSet.of((0x20, 0x7E)),
    "Punct": _GRAPH.intersection(_ALPHA.union(_DIGIT).negated()),
    "Space": _SPACE,
    "Upper": _UPPER,
    "XDigit": _HEX,
    "javaLowerCase": CharSet.properties("Lowercase"),
    "javaUpperCase": CharSet.properties("Uppercase"),
    "javaAlphabetic": CharSet.properties("Alphabetic"),
    "javaIdeographic": CharSet.properties("Ideographic"),
    "javaTitleCase": CharSet.properties("Lt"),
    "javaDigit": CharSet.properties("Nd"),
    "javaDefined": CharSet.properties("^Cn"),
    "javaLetter": CharSet.properties("L"),
    "javaLetterOrDigit": CharSet.properties("L", "Nd"),
    "javaJavaIdentifierStart": CharSet.properties("L", "Nl", "Sc", "Pc"),
    "javaJavaIdentifierPart": CharSet.properties("L", "Nl", "Sc", "Pc", "Nd", "Mc", "Mn").union(_IGNORABLE),
    "javaUnicodeIdentifierStart": CharSet.properties("ID_Start"),
    "javaUnicodeIdentifierPart": CharSet.properties("ID_Continue").union(_IGNORABLE),
    "javaIdentifierIgnorable": _IGNORABLE,
    "javaSpaceChar": CharSet.properties("Z"),
    "javaWhitespace": CharSet.properties("Z")
    .intersection(CharSet.chars(0xA0, 0x2007, 0x202F).negated())
    .union(CharSet.of((9, 0x0D), (0x1C, 0x1F))),
    "javaISOControl": CharSet.of((0, 0x1F), (0x7F, 0x9F)),
    "javaMirrored": CharSet.properties("Bidi_Mirrored"),
}
_UNICODE_NAMED = {
    "ALPHABETIC": CharSet.properties("Alphabetic"),
    "ASSIGNED": CharSet.properties("^Cn"),
    "CONTROL": CharSet.properties("Cc"),
    "HEXDIGIT": CharSet.properties("Nd").union(_HEX).union(CharSet.of((0xFF21, 0xFF26), (0xFF41, 0xFF46))),
    "IDEOGRAPHIC": CharSet.properties("Ideographic"),
    "JOINCONTROL": CharSet.of((0x200C, 0x200D)),
    "LETTER": CharSet.properties("L"),
    "LOWERCASE": CharSet.properties("Lowercase"),
    "NONCHARACTERCODEPOINT": _NONCHARACTERS,
    "TITLECASE": CharSet.properties("Lt"),
    "PUNCTUATION": CharSet.properties("P"),
    "UPPERCASE": CharSet.properties("Uppercase"),
    "WHITESPACE": _UNICODE_SPACE,
    "WORD": _UNICODE_WORD,
}
for _name in ("HEX_DIGIT", "JOIN_CONTROL", "NONCHARACTER_CODE_POINT", "WHITE_SPACE"):
    _UNICODE_NAMED[_name] = _UNICODE_NAMED[_name.replace("_", "")]
_POSIX_IN_UNICODE = {
    "ALPHA": _UNICODE_NAMED["ALPHABETIC"],
    "LOWER": _UNICODE_NAMED["LOWERCASE"],
    "UPPER": _UNICODE_NAMED["UPPERCASE"],
    "SPACE": _UNICODE_SPACE,
    "PUNCT": _UNICODE_NAMED["PUNCTUATION"],
    "XDIGIT": _UNICODE_NAMED["HEXDIGIT"],
    "ALNUM": CharSet.properties("Alphabetic", "Nd"),
    "CNTRL": _UNICODE_NAMED["CONTROL"],
    "DIGIT": CharSet.properties("Nd"),
    "BLANK": _UNICODE_BLANK,
    "GRAPH": _UNICODE_GRAPH,
    "PRINT": _UNICODE_GRAPH.union(_UNICODE_BLANK).intersection(CharSet.properties("^Cc")),
}
# With the flag `i` a class of one case is one of all cases.
_ALL_CASES = CharSet.properties("Lowercase", "Uppercase", "Lt")
_WITHOUT_CASE = {
    **dict.fromkeys(("Lower", "Upper"), _ALPHA),
    **dict.fromkeys(("Lu", "Ll", "Lt"), _CASED),
    **dict.fromkeys(("javaLowerCase", "javaUpperCase", "javaTitleCase"), _ALL_CASES),
}
_UNICODE_WITHOUT_CASE = dict.fromkeys(("LOWERCASE", "UPPERCASE", "TITLECASE", "LOWER", "UPPER"), _ALL_CASES)
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ \-]*")


def escape_class(letter: str, *, unicode: bool) -> CharSet | None:
    r"""The set of `\d`, `\W` and so on; None: the letter does not denote a set.

    Args:
        letter: after the backslash.
        unicode: the flag `U`.
    """
    if letter in "hHvV":
        found = HORIZONTAL if letter in "hH" else VERTICAL
    elif letter.lower() in "dsw":
        ascii_only, wide = {
            "d": (_DIGIT, _POSIX_IN_UNICODE["DIGIT"]),
            "s": (_SPACE, _UNICODE_SPACE),
            "w": (_WORD, _UNICODE_WORD),
        }[letter.lower()]
        found = wide if unicode else ascii_only
    else:
        return None
    return found.negated() if letter.isupper() else found


def property_class(name: str, *, unicode: bool, ignores_case: bool) -> CharSet | None:
    r"""The set of `\p{name}`; None: Java has no such name.

    Args:
        name: between the braces.
        unicode: the flag `U`, with which POSIX names are Unicode's.
        ignores_case: the flag `i`.
    """
    key, equals, value = name.partition("=")
    if equals:
        return _with_value(key.lower(), value, ignores_case=ignores_case)
    if name.startswith("In"):
        return _value_class("blk", name[2:])
    if name.startswith("Is"):
        short = name[2:]
        found = _unicode_class({**_POSIX_IN_UNICODE, **_UNICODE_NAMED}, short.upper(), ignores_case=ignores_case)
        return found or _category(short, ignores_case=ignores_case) or _value_class("sc", short)
    wide = _unicode_class(_POSIX_IN_UNICODE, name.upper(), ignores_case=ignores_case) if unicode else None
    return wide or _category(name, ignores_case=ignores_case)


def _unicode_class(names: dict[str, CharSet], name: str, *, ignores_case: bool) -> CharSet | None:
    found = names.get(name)
    return _UNICODE_WITHOUT_CASE.get(name, found) if ignores_case and found else found


def _with_value(key: str, value: str, *, ignores_case: bool) -> CharSet | None:
    if key in ("gc", "general_category"):
        return _category(value, ignores_case=ignores_case)
    if key in ("sc", "script"):
        return _value_class("sc", value)
    return _value_class("blk", value) if key in ("blk", "block") else None


def _category(name: str, *, ignores_case: bool) -> CharSet | None:
    if ignores_case and name in _WITHOUT_CASE:
        return _WITHOUT_CASE[name]
    return CharSet.properties(name) if name in _CATEGORIES else _NAMED.get(name)


def _value_class(key: str, value: str) -> CharSet | None:
    """A script or block; whether there is one of that name is known when the pattern is compiled."""
    return CharSet.properties(f"{key}={value}") if _VALUE.fullmatch(value) else None
