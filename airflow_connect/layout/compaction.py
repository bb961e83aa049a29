"""Which file of its directory a record belongs to, under `files.per.partition=compact`.

There every directory has files of its own, which end at `flush.size` records or with the run and at nothing else: late
records, alternating schemas and changes of the directory make no small files. A file has one schema, so what is left to
decide is which schemas share files:

| `schema.compatibility` | files of |
|---|---|
| NONE | each schema by itself |
| BACKWARD, FULL | the highest version that the directory has seen and that the record can be projected to |
| FORWARD | the lowest version that the directory has seen and that the record can be projected to |

A record that fits none of them begins files of its own schema; where a file begins anew under `Rotation`
(`StorageSchemaCompatibility.should_change_file`), a record does not fit here. Records without a schema share files
with one another only. So a directory of one schema gets ceil(records / flush.size) files for each Kafka partition, and
no sequence of versions makes more of them than there are schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema


class FileSchemas:
    """Schemas of the files of one topic-partition, by directory; they outlive the files."""

    def __init__(self, compatibility: StorageSchemaCompatibility) -> None:
        """Nothing is seen yet."""
        self._compatibility = compatibility
        self._seen: dict[str, list[Schema]] = {}
        self._anywhere: dict[Schema, None] = {}

    def of_file(self, directory: str, schema: Schema | None) -> Schema | None:
        """Schema of the file that a record with `schema` belongs to; changes nothing.

        Raises:
            SchemaError: the mode needs versions and the schema has none; the record is at fault.
        """
        if schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return schema
        self._check(schema)
        for seen in self._seen.get(directory, ()):
            if not self._compatibility.should_change_file(schema, seen):
                return seen
        return schema

    def written(self, directory: str, file_schema: Schema | None) -> None:
        """Take note that a file of `directory` has `file_schema`; records that failed leave no trace."""
        if file_schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return
        self._anywhere[file_schema] = None
        seen = self._seen.setdefault(directory, [])
        if file_schema in seen:
            return
        seen.append(file_schema)
        # The sort is stable: of equal versions the first comes first.
        is_reversed = self._compatibility is not StorageSchemaCompatibility.FORWARD
        seen.sort(key=lambda schema: schema.version or 0, reverse=is_reversed)

    def keeps_its_own(self, schema: Schema | None) -> bool:
        """Whether records with `schema` certainly need no projection, whatever their directory.

        Raises:
            SchemaError: as `of_file`.
        """
        if schema is None or self._compatibility is StorageSchemaCompatibility.NONE:
            return True
        self._check(schema)
        return all(seen == schema or self._compatibility.should_change_file(schema, seen) for seen in self._anywhere)

    def _check(self, schema: Schema) -> None:
        self._compatibility.should_change_file(schema, schema)
