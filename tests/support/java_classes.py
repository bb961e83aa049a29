"""Class files and jars of plugins, made without a compiler: as much of a class as a scan reads."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PUBLIC, INTERFACE, ABSTRACT, MODULE = 0x0001, 0x0200, 0x0400, 0x8000
SINK = "org/apache/kafka/connect/sink/SinkConnector"
SOURCE = "org/apache/kafka/connect/source/SourceConnector"
CONVERTER = "org/apache/kafka/connect/storage/Converter"
HEADER_CONVERTER = "org/apache/kafka/connect/storage/HeaderConverter"
TRANSFORMATION = "org/apache/kafka/connect/transforms/Transformation"
PREDICATE = "org/apache/kafka/connect/transforms/predicates/Predicate"
CONFIG_PROVIDER = "org/apache/kafka/common/config/provider/ConfigProvider"
OBJECT = "java/lang/Object"


def class_file(
    name: str,
    parent: str = OBJECT,
    interfaces: Sequence[str] = (),
    access: int = PUBLIC,
    constructor: tuple[int, str] | None = (PUBLIC, "()V"),
    texts: Sequence[str] = (),
) -> bytes:
    """A class without code.

    Args:
        name: with slashes.
        parent, interfaces: its super types.
        access: flags of the class.
        constructor: its access flags and its type; None: there is none.
        texts: constants, such as names that the code would use.
    """
    constants: list[bytes] = []

    def add(data: bytes, *, is_wide: bool = False) -> int:
        constants.append(data)
        index = len(constants)
        if is_wide:
            constants.append(b"")
        return index

    def utf8(text: str) -> int:
        data = text.encode()
        return add(struct.pack(">BH", 1, len(data)) + data)

    def of_class(text: str) -> int:
        return add(struct.pack(">BH", 7, utf8(text)))

    add(struct.pack(">Bq", 5, 7), is_wide=True)  # A long takes two places.
    this, above, implemented = of_class(name), of_class(parent), [of_class(one) for one in interfaces]
    for text in texts:
        utf8(text)
    code, field, kind = utf8("Code"), utf8("count"), utf8("I")
    body = struct.pack(f">HHHH{len(implemented)}H", access, this, above, len(implemented), *implemented)
    body += struct.pack(">HHHHH", 1, 0, field, kind, 0)
    methods = [] if constructor is None else [constructor]
    body += struct.pack(">H", len(methods))
    for flags, descriptor in methods:
        body += struct.pack(">HHHHHI", flags, utf8("<init>"), utf8(descriptor), 1, code, 4) + b"\0\0\0\0"
    body += struct.pack(">H", 0)
    return struct.pack(">IHHH", 0xCAFEBABE, 0, 61, len(constants) + 1) + b"".join(constants) + body


def jar(path: Path, classes: Sequence[bytes] = (), files: Mapping[str, bytes | str] | None = None) -> Path:
    """A jar of class files and other files, with the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for data in classes:
            archive.writestr(zipfile.ZipInfo(f"{name_of(data)}.class"), data)
        for name, text in (files or {}).items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def services(interface: str, *class_names: str) -> dict[str, str]:
    """A service file that declares classes."""
    return {f"META-INF/services/{interface.replace('/', '.')}": "\n".join(class_names) + "\n"}


def name_of(data: bytes) -> str:
    """The name of a class that `class_file` made: its first text."""
    start = 10 + 9
    (length,) = struct.unpack_from(">H", data, start + 1)
    return data[start + 3 : start + 3 + length].decode()
