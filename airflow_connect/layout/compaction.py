"""Which file of its directory a record belongs to, with `files.per.partition=compact`.

Every directory then has its own files, which end only at `flush.size` records or with the run: late records,
alternating schemas and changes of the directory do not create small files. A file has one schema, so the remaining
question is which schemas share files:

| `schema.compatibility` | files of |
|---|---|
| NONE | each schema separately |
| BACKWARD, FULL | the highest version that the directory has seen and that the record can be projected to |
| FORWARD | the lowest version that the directory has seen and that the record can be projected to |

A record that fits none of them starts files with its own schema; a record does not fit if `Rotation` would start a new
file for it (`StorageSchemaCompatibility.should_change_file`). Records without a schema share files only with each
other. So a directory with one schema gets ceil(records / flush.size) files for each Kafka partition, and no sequence of
versions adds more series of files than there are schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema


class FileSchemas:
    """Schemas of the files of one topic-partition, by directory; they outlive the files."""

    def __init__(self, compatibility: StorageSchemaCompatibility) -> None:
        """No schema has been seen yet."""
        self._compatibility = compatibility
        self._seen: dict[str, list[Schema]] = {}
        self._anywhere: dict[Schema, None] = {}

    def of_file(self, directory: str, schema: Schema | None) -> Schema | None:
        """Schema of the file that a record with `schema` belongs to; changes nothing.

        Raises:
            SchemaError: the mode needs versions and the schema of the record has none.
        """
        if schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return schema
        self._check(schema)
        for seen in self._seen.get(directory, ()):
            if not self._compatibility.should_change_file(schema, seen):
                return seen
        return schema

    def written(self, directory: str, file_schema: Schema | None) -> None:
        """Record that a file of `directory` has `file_schema`; failed records have no effect."""
        if file_schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return
        self._anywhere[file_schema] = None
        seen = self._seen.setdefault(directory, [])
        if file_schema in seen:
            return
        seen.append(file_schema)
        # The sort is stable: equal versions keep their order.
        is_reversed = self._compatibility is not StorageSchemaCompatibility.FORWARD
        seen.sort(key=lambda schema: schema.version or 0, reverse=is_reversed)

    def keeps_its_own(self, schema: Schema | None) -> bool:
        """Whether records with `schema` certainly need no projection, whatever their directory.

        Raises:
            SchemaError: as for `of_file`.
        """
        if schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return True
        self._check(schema)
        return all(seen == schema or self._compatibility.should_change_file(schema, seen) for seen in self._anywhere)

    def _check(self, schema: Schema) -> None:
        self._compatibility.should_change_file(schema, schema)
