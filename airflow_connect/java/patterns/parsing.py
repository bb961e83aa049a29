"""Java's syntax of patterns.

Source: documentation of java.util.regex.Pattern, and recordings of what Java 17 accepts.
"""

from __future__ import annotations

from airflow_connect.java.patterns import char_sets, properties
from airflow_connect.java.patterns.char_sets import EVERYTHING, CharSet
from airflow_connect.java.patterns.look_behind import check_look_behind
from airflow_connect.java.patterns.nodes import (
    Anchor,
    BackReference,
    Chars,
    Choice,
    Group,
    Node,
    Pattern,
    PatternError,
    Repeat,
    Sequence,
    Special,
)
from airflow_connect.java.patterns.scanning import Scanner

MOST_REPEATS = 65_535
_JAVA_INT_MAX = 2**31 - 1
_DEEPEST = 100
_FLAGS = "imsduxU"
_CHARACTERS = {"a": 7, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 9}
_NOT_DOT = properties.LINE_ENDS.negated()
_NOT_LINE_FEED = CharSet.chars(0x0A).negated()


def parse(text: str, *, python_names: bool = False) -> Pattern:
    """Read a pattern.

    Args:
        text: as Java reads it.
        python_names: also take `(?P<name>...)`, `(?P=name)` and underscores in names, as grok and Python do.

    Raises:
        PatternError: Java refuses it, or it is not supported here.
    """
    parser = _Parser(text, python_names=python_names)
    try:
        root = parser.choice()
    except RecursionError:
        raise PatternError("Groups are nested too deeply") from None
    if not parser.scanner.is_at_end:
        parser.scanner.fail("Unmatched closing ')'")
    return Pattern(root, parser.groups, parser.names)


class _Parser:
    """One reading of a pattern; `groups` and `names` are those seen so far."""

    def __init__(self, text: str, *, python_names: bool) -> None:
        self.scanner = Scanner(text)
        self.groups = 0
        self.names: dict[str, int] = {}
        self._python_names = python_names
        self._depth = 0

    def choice(self) -> Node:
        """Branches up to a closing parenthesis or the end."""
        self._depth += 1
        if self._depth > _DEEPEST:
            self.scanner.fail(f"More than {_DEEPEST} groups inside one another are not supported")
        branches = [self._sequence()]
        while self.scanner.peek() == ord("|"):
            self.scanner.advance()
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Choice(branches)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while True:
            char = chr(self.scanner.peek())
            if char in "|)" or (char == "\0" and self.scanner.is_at_end):
                return parts[0] if len(parts) == 1 else Sequence(parts)
            node = self._group() if char == "(" else self._atom(char)
            if node is not None:
                parts.append(self._repeated(node))

    def _atom(self, char: str) -> Node:
        scanner = self.scanner
        if char in "?*+":
            scanner.advance()
            scanner.fail(f"Dangling meta character '{char}'")
        if char == "[":
            return Chars(self._class(closes=True))
        if char == "\\":
            return self._escape()
        if char == "{":
            # Nothing precedes: as in Java, the count applies to the empty text.
            return Sequence()
        scanner.advance()
        if char in "^$":
            return self._line_anchor(char)
        if char == ".":
            if "s" in scanner.flags:
                return Chars(EVERYTHING)
            return Chars(_NOT_LINE_FEED if "d" in scanner.flags else _NOT_DOT)
        return Chars(self._single(ord(char)))

    def _line_anchor(self, char: str) -> Anchor:
        flags = self.scanner.flags
        if char == "^" and "m" not in flags:
            return Anchor(r"\A")
        return Anchor(char, multiline="m" in flags, unix_lines="d" in flags)

    def _single(self, code: int) -> CharSet:
        return self._range(code, code)

    def _range(self, first: int, last: int) -> CharSet:
        flags = self.scanner.flags
        if "i" in flags:
            return char_sets.ignoring_case(first, last, unicode_case="u" in flags)
        return CharSet.of((first, last))

    # Repetition

    def _repeated(self, node: Node) -> Node:
        scanner = self.scanner
        char = chr(scanner.peek())
        if char not in "?*+{":
            return node
        if char == "{":
            least, most = self._count()
        else:
            least, most = (1 if char == "+" else 0), (1 if char == "?" else None)
        mode = chr(scanner.advance())
        if mode not in "?+":
            return Repeat(node, least, most, "")
        scanner.advance()
        return Repeat(node, least, most, mode)

    def _count(self) -> tuple[int, int | None]:
        """A count in braces; stops at the closing brace."""
        scanner = self.scanner
        scanner.position += 1
        if not _is_digit(scanner.after(0)):
            scanner.fail("Illegal repetition")
        least = self._number(scanner.read_raw())
        most: int | None = least
        if scanner.peek() == ord(","):
            scanner.advance()
            most = None if scanner.peek() == ord("}") else self._number(ord("0"))
        if scanner.peek() != ord("}"):
            scanner.fail("Unclosed counted closure")
        if most is not None and most < least:
            scanner.fail("Illegal repetition range")
        if max(least, most or 0) > MOST_REPEATS:
            scanner.fail(f"Counts above {MOST_REPEATS} are not supported")
        return least, most

    def _number(self, first: int) -> int:
        value = first - ord("0")
        while _is_digit(self.scanner.peek()):
            value = value * 10 + self.scanner.read() - ord("0")
            if value > _JAVA_INT_MAX:
                self.scanner.fail("Illegal repetition range")
        return value

    # Groups

    def _group(self) -> Node | None:
        """A group; None for flags without a group, which apply to the end of the enclosing group."""
        scanner, flags = self.scanner, self.scanner.flags
        if scanner.advance() != ord("?"):
            node = self._body("(", self._capture(""))
        else:
            scanner.position += 1
            kind = chr(scanner.read_raw())
            if kind in ":=!>":
                node = self._body(f"(?{kind}", 0)
            elif kind == "<":
                node = self._named_or_behind()
            elif kind == "P" and self._python_names:
                return self._python_group(flags)
            elif kind in "$@":
                scanner.fail("Unknown group type")
            else:
                scanner.position -= 1
                self._take_flags()
                closing = scanner.read()
                if closing == ord(")"):
                    return None
                if closing != ord(":"):
                    scanner.fail("Unknown inline modifier")
                node = self._body("(?:", 0)
        scanner.flags = flags
        return node

    def _body(self, kind: str, number: int, name: str = "") -> Group:
        """What is inside a group, and its end."""
        body = self.choice()
        if self.scanner.read() != ord(")"):
            self.scanner.fail("Unclosed group")
        return Group(kind, body, number, name)

    def _capture(self, name: str) -> int:
        self.groups += 1
        if name:
            self.names[name] = self.groups
        return self.groups

    def _named_or_behind(self) -> Group:
        first = self.scanner.read()
        if chr(first) not in "=!":
            return self._named_group(self._name(first, ">"))
        node = self._body(f"(?<{chr(first)}", 0)
        try:
            check_look_behind(node.body)
        except PatternError as error:
            self.scanner.fail(str(error))
        return node

    def _named_group(self, name: str) -> Group:
        if name in self.names:
            self.scanner.fail(f"Named capturing group <{name}> is already defined")
        return self._body("(", self._capture(name), name)

    def _python_group(self, flags: frozenset[str]) -> Node:
        opening = chr(self.scanner.read())
        if opening == "<":
            node: Node = self._named_group(self._name(self.scanner.read(), ">"))
            self.scanner.flags = flags
            return node
        if opening != "=":
            self.scanner.fail("Unknown inline modifier")
        return self._reference_to(self._name(self.scanner.read(), ")"))

    def _name(self, first: int, end: str) -> str:
        """The name of a group, after its first character; moves past its end."""
        name, more = chr(first), "_" if self._python_names else ""
        if not name.isascii() or not (name.isalpha() or name in more):
            self.scanner.fail("capturing group name does not start with a Latin letter")
        while (char := chr(self.scanner.read())).isascii() and (char.isalnum() or char in more):
            name += char
        if char != end:
            self.scanner.fail(f"named capturing group is missing trailing '{end}'")
        return name

    def _take_flags(self) -> None:
        scanner, adds = self.scanner, True
        while True:
            flag = chr(scanner.peek())
            if flag == "-" and adds:
                adds = False
            elif flag == "c":
                scanner.advance()
                scanner.fail("The flag c (canonical equivalence) is not supported")
            elif flag in _FLAGS:
                changed = {"U", "u"} if flag == "U" else {flag}
                scanner.flags = scanner.flags | changed if adds else scanner.flags - changed
            else:
                return
            scanner.advance()

    # Escapes

    def _escape(self) -> Node:
        """What begins with a backslash, outside of classes."""
        scanner = self.scanner
        scanner.position += 1
        letter = chr(scanner.read_raw())
        if letter in "pP":
            return Chars(self._property(negated=letter == "P"))
        if letter in "123456789":
            return self._numbered_reference(int(letter))
        if letter == "k":
            if scanner.read() != ord("<"):
                scanner.fail("\\k is not followed by '<' for named capturing group")
            return self._reference_to(self._name(scanner.read(), ">"))
        if letter in "RX":
            return Special(letter)
        if letter in "AzZGbB":
            return self._anchor(letter)
        found = properties.escape_class(letter, unicode="U" in scanner.flags)
        return Chars(self._single(self._character(letter)) if found is None else found)

    def _anchor(self, letter: str) -> Anchor:
        scanner = self.scanner
        if letter == "Z":
            return Anchor("$", unix_lines="d" in scanner.flags)
        if letter == "b" and scanner.peek() == ord("{") and scanner.after() == ord("g"):
            scanner.fail("\\b{g} is not supported")
        return Anchor(f"\\{letter}", unicode="U" in scanner.flags)

    def _numbered_reference(self, number: int) -> BackReference:
        # Further digits belong to the number if such a group precedes this position.
        while _is_digit(self.scanner.peek()):
            longer = number * 10 + self.scanner.peek() - ord("0")
            if longer > self.groups:
                break
            number = longer
            self.scanner.read()
        return self._reference(number)

    def _reference_to(self, name: str) -> BackReference:
        if name not in self.names:
            self.scanner.fail(f"named capturing group <{name}> does not exist")
        return self._reference(self.names[name])

    def _reference(self, number: int) -> BackReference:
        flags = self.scanner.flags
        return BackReference(number, "i" in flags, "u" in flags)

    def _character(self, letter: str) -> int:
        """The character that an escape represents; the letter is skipped."""
        scanner = self.scanner
        if letter in _CHARACTERS:
            return _CHARACTERS[letter]
        reader = {
            "0": scanner.octal, "x": scanner.hexadecimal, "u": scanner.unicode, "c": scanner.control,
            "N": scanner.named_character,
        }.get(letter)  # fmt: skip
        if reader is not None:
            return reader()
        if letter.isascii() and letter.isalnum():
            scanner.fail("Illegal/unsupported escape sequence")
        if scanner.position > scanner.length:
            scanner.fail("Unexpected internal error")
        return ord(letter)

    def _property(self, *, negated: bool) -> CharSet:
        """What follows `p` or `P`."""
        scanner = self.scanner
        if scanner.peek() != ord("{"):
            if scanner.is_at_end:
                scanner.fail("Unknown character property name {}")
            name = chr(scanner.read())
        else:
            scanner.advance()
            end = next((at for at in range(scanner.position, scanner.length) if scanner.codes[at] == ord("}")), None)
            if end is None:
                scanner.fail("Unclosed character family")
            name = "".join(map(chr, scanner.codes[scanner.position : end]))
            scanner.position = end + 1
            if not name:
                scanner.fail("Empty character family")
        flags = scanner.flags
        found = properties.property_class(name, unicode="U" in flags, ignores_case="i" in flags)
        if found is None:
            scanner.fail(f"Unknown character property name {{{name}}}")
        return found.negated() if negated else found

    # Character classes

    def _class(self, *, closes: bool) -> CharSet:
        """A class from its opening bracket on, or the right side of `&&` from the character before it on.

        Args:
            closes: the closing bracket is stepped over.
        """
        scanner = self.scanner
        self._depth += 1
        if self._depth > _DEEPEST:
            scanner.fail(f"More than {_DEEPEST} classes inside one another are not supported")
        is_nested = scanner.after(0) == ord("[")
        scanner.advance()
        negated = is_nested and scanner.after(0) == ord("^") and scanner.after(-1) == ord("[")
        if negated:
            scanner.advance()
        found = self._members()
        if closes:
            scanner.advance()
        self._depth -= 1
        return found.negated() if negated else found

    def _members(self) -> CharSet:
        """Members of a class up to its closing bracket."""
        scanner = self.scanner
        # Single characters count as one part, which joins the others at an `&&` and at the end, as in Java.
        found: CharSet | None = None
        singles: CharSet | None = None
        last: CharSet | None = None
        while True:
            char = chr(scanner.peek())
            if char == "\0" and scanner.is_at_end:
                scanner.fail("Unclosed character class")
            if char == "]" and (found is not None or singles is not None):
                return _joined(found, singles) or EVERYTHING
            if char == "[":
                last = self._class(closes=True)
                found = _joined(found, last)
            elif char == "&" and self._steps_over_intersection():
                right = self._right_side()
                if singles is not None:
                    last = singles if found is None else last
                    found, singles = _joined(found, singles), None
                last = right or last
                if last is None:
                    scanner.fail("Bad class syntax")
                found = last if found is None else found.intersection(last)
            else:
                member, is_single = self._member()
                last = None if is_single else member
                if is_single:
                    singles = _joined(singles, member)
                else:
                    found = _joined(found, member)

    def _steps_over_intersection(self) -> bool:
        scanner, before = self.scanner, self.scanner.position
        if scanner.advance() == ord("&"):
            scanner.advance()
            return True
        scanner.position = before
        return False

    def _right_side(self) -> CharSet | None:
        """What follows `&&` up to the next one or the end of the class; None: nothing."""
        scanner = self.scanner
        right: CharSet | None = None
        while (char := chr(scanner.peek())) not in "]&":
            if char == "[":
                right = _joined(right, self._class(closes=True))
            else:
                scanner.position -= 1
                right = _joined(right, self._plain_right_side())
        return right

    def _plain_right_side(self) -> CharSet:
        self.scanner.advance()
        return self._members()

    def _member(self) -> tuple[CharSet, bool]:
        """A character, range, property or predefined class, and whether it is a single character."""
        scanner = self.scanner
        if chr(scanner.peek()) != "\\":
            code = scanner.peek()
            scanner.advance()
        else:
            scanner.position += 1
            letter = chr(scanner.read_raw())
            if letter in "pP":
                return self._property(negated=letter == "P"), False
            starts_range = letter == "v" and scanner.after(0) == ord("-")
            predefined = None if starts_range else properties.escape_class(letter, unicode="U" in scanner.flags)
            if predefined is not None:
                return predefined, False
            code = 0x0B if starts_range else self._character(letter)
        if scanner.peek() == ord("-") and chr(scanner.after()) not in "[]":
            return self._range(code, self._range_end(code)), False
        return self._single(code), True

    def _range_end(self, first: int) -> int:
        scanner = self.scanner
        scanner.advance()
        if scanner.peek() == ord("\\"):
            scanner.position += 1
            letter = chr(scanner.read_raw())
            is_class = properties.escape_class(letter, unicode=False) is not None and letter != "v"
            last = -1 if is_class else 0x0B if letter == "v" else self._character(letter)
        else:
            last = scanner.peek()
            scanner.advance()
        if last < first:
            scanner.fail("Illegal character range")
        return last


def _is_digit(code: int) -> bool:
    return 0x30 <= code <= 0x39


def _joined(first: CharSet | None, second: CharSet | None) -> CharSet | None:
    if first is None or second is None:
        return first or second
    return first.union(second)
