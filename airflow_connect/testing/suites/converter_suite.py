"""The conformance suite of converters. A subclass lists the values that a converter must convert.

class TestMyConverter(ConverterConformance):
    converter_class = "my_package.converter:MyConverter"
    values = [(Schema(Type.INT64), 7), (None, "text")]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.converter import ColumnarConverter, Converter, SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.errors import ConfigError, DataError


class ConverterConformance:
    """What every key or value converter must do.

    Attributes:
        converter_class: as in `value.converter`.
        config: its keys, without `value.converter.`.
        values: schemas and values that survive a round trip unchanged.
        broken: bytes that it must refuse.
        wrong_configs: configurations that it must refuse, each with the key that must be named.
    """

    converter_class: ClassVar[str]
    config: ClassVar[Mapping[str, str]] = {}
    values: ClassVar[Sequence[tuple[Schema | None, Any]]] = ()
    broken: ClassVar[Sequence[bytes]] = ()
    wrong_configs: ClassVar[Sequence[tuple[Mapping[str, str], str]]] = ()

    topic: ClassVar[str] = "conformance"

    def open_converter(self, *, is_key: bool = False) -> Converter:
        """A configured converter."""
        converter: Converter = load_class(PluginKind.CONVERTER, self.converter_class)()
        converter.configure(dict(self.config), is_key)
        return converter

    @pytest.fixture(params=[False, True], ids=["value", "key"])
    def converter(self, request: pytest.FixtureRequest) -> Converter:
        """A converter of values, and one of keys."""
        return self.open_converter(is_key=request.param)

    def test_there_are_values_to_carry(self) -> None:
        assert self.values, "List some values in `values`."

    def test_value_comes_back_as_it_went_in(self, converter: Converter) -> None:
        for schema, value in self.values:
            data = converter.from_connect(self.topic, schema, value)
            assert converter.to_connect(self.topic, data) == (schema, value)

    def test_other_converter_reads_what_this_one_wrote(self) -> None:
        writer, reader = self.open_converter(), self.open_converter()
        for schema, value in self.values:
            assert reader.to_connect(self.topic, writer.from_connect(self.topic, schema, value)) == (schema, value)

    def test_null_is_null_in_both_directions(self, converter: Converter) -> None:
        assert converter.from_connect(self.topic, None, None) is None
        assert converter.to_connect(self.topic, None).value is None

    def test_input_is_not_changed(self, converter: Converter) -> None:
        for schema, value in self.values:
            given = copy.deepcopy(value)
            converter.from_connect(self.topic, schema, given)
            assert given == value

    def test_writing_again_gives_equal_bytes(self, converter: Converter) -> None:
        for schema, value in self.values:
            first = converter.from_connect(self.topic, schema, value)
            assert converter.from_connect(self.topic, schema, value) == first

    def test_broken_bytes_are_a_data_error(self, converter: Converter) -> None:
        for data in self.broken:
            with pytest.raises(DataError) as caught:
                converter.to_connect(self.topic, data)
            assert caught.value.message, "The error has no message."

    def test_any_bytes_are_a_value_or_a_data_error(self, converter: Converter) -> None:
        good = [converter.from_connect(self.topic, schema, value) or b"" for schema, value in self.values]
        cut = [data[:end] for data in good for end in range(0, len(data), max(1, len(data) // 16))]
        for data in (b"", b"\x00", b"\xff" * 9, b"\x00" * 64, b"{", b"null", *cut):
            try:
                found = converter.to_connect(self.topic, data)
            except DataError:
                continue
            assert isinstance(found, SchemaAndValue)

    def test_wrong_configuration_names_the_key(self) -> None:
        for config, key in self.wrong_configs:
            converter: Converter = load_class(PluginKind.CONVERTER, self.converter_class)()
            with pytest.raises(ConfigError) as caught:
                converter.configure(config, False)
            assert key in (caught.value.config_path, *caught.value.message.split()), caught.value

    def test_columns_equal_records(self) -> None:
        converter = self.open_converter()
        if not isinstance(converter, ColumnarConverter):
            return
        import pyarrow as pa

        for schema, value in self.values:
            data = converter.from_connect(self.topic, schema, value)
            if data is None:
                continue
            pieces = converter.to_columns(self.topic, pa.array([data, data], pa.binary()))
            if pieces is not None:
                read = converter.to_connect(self.topic, data)
                assert sum(len(piece) for piece in pieces) == 2
                assert all(piece.schema == read.schema for piece in pieces)
