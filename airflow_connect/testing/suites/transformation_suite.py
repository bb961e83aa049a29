"""The conformance suite of transformations. A subclass lists records and how the transformation changes them.

class TestMyTransformation(TransformationConformance):
    transformation_class = "my_package.transformation:Upper$Value"
    cases = [(SinkRecord(topic="t", partition=0, offset=0, value="a"), {"value": "A"})]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.record import ConnectRecord, SinkRecord
from airflow_connect.api.transform import Transformation
from airflow_connect.errors import ConfigError, DataError


class TransformationConformance:
    """What every transformation must do.

    Attributes:
        transformation_class: as in `transforms.<alias>.type`.
        config: its keys, without `transforms.<alias>.`.
        cases: records, each with the attributes that change; None: the record is dropped.
        wrong_configs: configurations that it must refuse, each with the key that must be named.
    """

    transformation_class: ClassVar[str]
    config: ClassVar[Mapping[str, str]] = {}
    cases: ClassVar[Sequence[tuple[ConnectRecord, Mapping[str, Any] | None]]] = ()
    wrong_configs: ClassVar[Sequence[tuple[Mapping[str, str], str]]] = ()

    @pytest.fixture
    def transformation(self) -> Transformation:
        """A configured transformation."""
        transformation: Transformation = load_class(PluginKind.TRANSFORMATION, self.transformation_class)()
        transformation.configure(dict(self.config))
        return transformation

    def test_there_are_cases(self) -> None:
        assert self.cases, "List some records and their changes in `cases`."

    def test_record_becomes_what_it_should(self, transformation: Transformation) -> None:
        for record, changes in self.cases:
            found = transformation.apply(record)
            expected = None if changes is None else record.changed(**changes)
            assert found == expected

    def test_input_is_not_changed(self, transformation: Transformation) -> None:
        for record, _ in self.cases:
            given = copy.deepcopy(record)
            transformation.apply(given)
            assert given == record

    def test_same_record_gives_the_same_again(self, transformation: Transformation) -> None:
        for record, _ in self.cases:
            assert transformation.apply(record) == transformation.apply(record)

    def test_book_keeping_of_sink_records_is_kept(self, transformation: Transformation) -> None:
        for record, _ in self.cases:
            found = transformation.apply(record)
            if isinstance(record, SinkRecord) and found is not None:
                assert isinstance(found, SinkRecord)
                places = [(r.original_topic, r.original_partition, r.offset) for r in (record, found)]
                assert places[0] == places[1]
                assert found.consumed is record.consumed

    def test_tombstone_is_a_record_or_a_data_error(self, transformation: Transformation) -> None:
        for record, _ in self.cases:
            tombstone = record.changed(value_schema=None, value=None)
            try:
                found = transformation.apply(tombstone)
            except DataError:
                continue
            assert found is None or isinstance(found, type(record))

    def test_wrong_configuration_names_the_key(self) -> None:
        for config, key in self.wrong_configs:
            transformation: Transformation = load_class(PluginKind.TRANSFORMATION, self.transformation_class)()
            with pytest.raises(ConfigError) as caught:
                transformation.configure(config)
            assert key in (caught.value.config_path, *caught.value.message.split()), caught.value

    def test_close_is_idempotent(self, transformation: Transformation) -> None:
        transformation.close()
        transformation.close()
