"""The prefix of a message: a zero byte, then the schema id as four bytes, big-endian.

Source: Confluent Schema Registry, "Wire format". The newer form, a GUID in the record header `__value_schema_id` or
`__key_schema_id`, is not read: converters see no headers.
"""

from __future__ import annotations

from airflow_connect.errors import DataError

MAGIC_BYTE = 0
PREFIX_BYTES = 5


def read_schema_id(data: bytes) -> int:
    """The schema id of a message; what follows begins at `PREFIX_BYTES`.

    Raises:
        DataError: it is too short, or has a wrong first byte.
    """
    if len(data) >= PREFIX_BYTES and data[0] == MAGIC_BYTE:
        return int.from_bytes(data[1:PREFIX_BYTES], "big")
    raise prefix_error(data)


def prefix(schema_id: int) -> bytes:
    """The bytes before the data of a message with this schema."""
    return schema_id.to_bytes(PREFIX_BYTES, "big")


def prefix_error(data: bytes) -> DataError:
    """The error for a message without a schema id."""
    if not data or data[0] == MAGIC_BYTE:
        return DataError(
            f"The message has {len(data)} bytes, too few for the {PREFIX_BYTES} bytes of magic byte and schema id.",
            code="data.truncated",
            suggestion="It was not written by a Schema Registry serializer, or was truncated.",
        )
    return DataError(
        f"Unknown magic byte! The message begins with the byte 0x{data[0]:02x}, not with 0x00: {_looks_like(data)}.",
        code="data.magic_byte",
        suggestion=(
            "Use the converter that fits the producer. A serializer that puts the schema id into a record header "
            "(HeaderSchemaIdSerializer) is not supported; use its default, PrefixSchemaIdSerializer."
        ),
    )


def _looks_like(data: bytes) -> str:
    """A guess at the format from the first bytes, without showing data."""
    start = data[:64].lstrip()
    if start[:1] in (b"{", b"["):
        return "it looks like JSON text, which JsonConverter reads"
    if data.startswith(b"Obj\x01"):
        return "it looks like an Avro object container file"
    if data[0] == 1:
        return "0x01 announces a schema GUID, which is only used in record headers"
    try:
        is_text = start.decode("utf-8", "strict").isprintable()
    except UnicodeDecodeError as error:
        is_text = error.start > len(start) - 4 > 0 and start[: error.start].decode("utf-8").isprintable()
    return "it looks like text, which StringConverter reads" if is_text else "it is not Schema Registry's wire format"
