"""Which schemas share files where each directory has files of its own."""

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import SchemaError
from airflow_connect.layout.compaction import FileSchemas
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility as Mode

V1 = s.struct(("id", s.INT32), version=1)
V2 = s.struct(("id", s.INT32), ("note", s.OPTIONAL_STRING), version=2)
V3 = s.struct(("id", s.INT32), ("note", s.OPTIONAL_STRING), ("more", s.OPTIONAL_STRING), version=3)
OTHER = s.struct(("id", s.STRING), version=2)
"""Of no version that the others can be projected to, or from."""
FREE = s.struct(("id", s.INT32))


def homes(mode, schemas, directory="a"):
    """Schema of each record's file, records coming one after another."""
    found, files = [], FileSchemas(mode)
    for schema in schemas:
        found.append(files.of_file(directory, schema))
        files.written(directory, found[-1])
    return found


@pytest.mark.parametrize(
    ("mode", "schemas", "expected"),
    [
        (Mode.NONE, [V1, V2, V1, None, FREE, V2], [V1, V2, V1, None, FREE, V2]),
        (Mode.BACKWARD, [V1, V2, V1, V3, V2, V1], [V1, V2, V2, V3, V3, V3]),
        (Mode.FULL, [V1, V3, V2], [V1, V3, V3]),
        (Mode.FORWARD, [V3, V2, V3, V1, V2, V3], [V3, V2, V2, V1, V1, V1]),
        (Mode.BACKWARD, [V1, OTHER, V1, V2, OTHER, V1], [V1, OTHER, V1, V2, OTHER, V2]),
        (Mode.FORWARD, [OTHER, V1, OTHER, V2, V3], [OTHER, V1, OTHER, V1, V1]),
        (Mode.BACKWARD, [None, V1, None, V2, None], [None, V1, None, V2, None]),
    ],
)
def test_record_joins_the_files_of_the_mode(mode, schemas, expected):
    assert homes(mode, schemas) == expected


@pytest.mark.parametrize("mode", Mode)
def test_schemas_that_alternate_for_ever_make_no_more_files_than_there_are_schemas(mode):
    assert len(set(homes(mode, [V1, V2, OTHER, V3, None] * 20))) <= 5


def test_directories_do_not_look_at_one_another():
    files = FileSchemas(Mode.BACKWARD)
    files.written("a", V2)

    assert (files.of_file("a", V1), files.of_file("b", V1)) == (V2, V1)


def test_asking_leaves_no_trace():
    files = FileSchemas(Mode.BACKWARD)
    files.of_file("a", V3)

    assert files.of_file("a", V1) is V1


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD, Mode.FULL])
def test_schema_without_version_is_refused_where_versions_count(mode):
    with pytest.raises(SchemaError, match=f"Schema version required for {mode.value} compatibility"):
        FileSchemas(mode).of_file("a", FREE)


@pytest.mark.parametrize(
    ("mode", "seen", "schema", "expected"),
    [
        (Mode.NONE, [V1, V2], V3, True),
        (Mode.BACKWARD, [], V1, True),
        (Mode.BACKWARD, [V1], V1, True),
        (Mode.BACKWARD, [V1], V2, True),  # newer than all that was seen
        (Mode.BACKWARD, [V2], V1, False),  # has to be projected in that directory
        (Mode.BACKWARD, [OTHER], V1, True),
        (Mode.FORWARD, [V2], V1, True),
        (Mode.FORWARD, [V1], V2, False),
        (Mode.FORWARD, [V1], None, True),
    ],
)
def test_columns_ask_whether_any_directory_could_project_them(mode, seen, schema, expected):
    files = FileSchemas(mode)
    for number, each in enumerate(seen):
        files.written(f"directory-{number}", each)

    assert files.keeps_its_own(schema) is expected
