"""ReplaceField: keeps, drops and renames fields. KIP-66; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.config.values import invalid
from airflow_connect.api.schema import Field, Schema
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, struct_like
from airflow_connect.transforms.shared.names import Names
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, require_map, require_struct

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

EXCLUDE, INCLUDE, RENAMES = "exclude", "include", "renames"
_PURPOSE = "field replacement"


def _rename(pair: str) -> list[str]:
    """Old and new name; as Java splits, colons at the end count for nothing."""
    return pair.rstrip(":").split(":")


def _check_renames(name: str, value: Any) -> None:
    for pair in value or ():
        if len(_rename(pair)) != 2:
            raise invalid(name, f"[{', '.join(value)}]", f"Invalid rename mapping: {pair}")


class _ReplaceField(OfKeyOrValue):
    """Filters and renames the fields of a struct or map; null stays as it is."""

    config_def = ConfigDef().define(
        ConfigKey(
            EXCLUDE, Type.LIST, "", "Fields to exclude. This takes precedence over the fields to include.",
            Names(), Importance.MEDIUM,
        ),
        ConfigKey(
            INCLUDE, Type.LIST, "", "Fields to include. If specified, only these fields will be used.",
            Names(), Importance.MEDIUM,
        ),
        ConfigKey(
            RENAMES, Type.LIST, "", "Field rename mappings.",
            Lambda(_check_renames, "list of colon-delimited pairs, e.g. `foo:bar,abc:xyz`"), Importance.MEDIUM,
        ),
        replace_null_with_default(),
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the names."""
        parsed = self.config_def.parse(config)
        self._exclude, self._include = frozenset(parsed[EXCLUDE]), frozenset(parsed[INCLUDE])
        self._renames: dict[str, str] = dict(map(_rename, parsed[RENAMES]))
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._replaced = SchemaCache(self._make_schema)

    def apply(self, record: R) -> R | None:
        """The record with the remaining fields, under their new names.

        Raises:
            DataError: the part is neither struct nor map, or two fields would have one name.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            return self.with_part(record, None, self._replaced_map(require_map(None, value, _PURPOSE)))
        fields = require_struct(schema, value, _PURPOSE)
        replaced = {self._name(f.name): field_value(fields, f, self._replace_null) for f in self._kept(schema)}
        return self.with_part(record, self._replaced(schema), replaced)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """Some of the columns. Not vectorizable: null values, two fields of one name, defaults of nested types."""
        part = self.columns_of(batch)
        members = struct_members(part)
        if members is None or part is None or part.schema is None:
            return None
        try:
            schema = self._replaced(part.schema)
        except DataError:
            return None
        columns = [with_default(members[f.index], f.schema, self._replace_null) for f in self._kept(part.schema)]
        plain = [column for column in columns if column is not None]
        if len(plain) < len(columns):
            return None
        return self.with_columns(batch, struct_columns(schema, plain, len(batch)))

    def _replaced_map(self, found: dict[Any, Any]) -> dict[Any, Any]:
        """Of two members that get one name the renamed one wins; Java's hash order decides in Connect."""
        kept = {name: member for name, member in found.items() if self._is_kept(name)}
        replaced = {self._name(name): member for name, member in kept.items()}
        if len(replaced) < len(kept):
            replaced |= {new: kept[old] for old, new in self._renames.items() if old in kept}
        return replaced

    def _is_kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _name(self, name: str) -> str:
        return self._renames.get(name, name)

    def _kept(self, schema: Schema) -> list[Field]:
        return [field for field in schema.fields if self._is_kept(field.name)]

    def _make_schema(self, schema: Schema) -> Schema:
        members = [(self._name(field.name), field.schema) for field in self._kept(schema)]
        unchanged = {field.name for field in self._kept(schema)} - self._renames.keys()
        missing = [old for old, new in self._renames.items() if schema.field(old) is None and new in unchanged]
        if missing:
            raise DataError(
                f"{missing[0]} is not a valid field name.",
                suggestion=f"There is no such field to rename, and {self._renames[missing[0]]} has a value of its own:"
                f" correct {RENAMES}.",
                config_path=RENAMES,
            )
        names = [name for name, _ in members]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DataError(
                f"Cannot create field because of field name duplication {twice[0]}.",
                suggestion=f"Rename or exclude the other field called {twice[0]}.",
                config_path=RENAMES,
            )
        return struct_like(schema, members)


class ReplaceField:
    """Keep, drop and rename fields of a struct or map; null stays null."""

    class Key(OfKey, _ReplaceField):
        """Of the record's key."""

    class Value(OfValue, _ReplaceField):
        """Of the record's value."""
