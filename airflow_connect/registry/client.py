"""A Schema Registry client: schemas by id and by subject, registration, compatibility; everything cached.

Sources: Confluent Schema Registry API v1; error codes 40401 (subject), 40402 (version), 40403 (schema), 409
(incompatible), 42201 (invalid schema), 42205 (read-only mode).

An answer that the registry itself did not give says nothing about records: it fails the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, SchemaError, UnavailableError
from airflow_connect.registry.connection import RegistryConnection, RegistryResponse, segment
from airflow_connect.registry.settings import RegistryConfig, shared_keys

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
_BAD_REQUEST, _CONFLICT, _UNPROCESSABLE = 400, 409, 422
_NOT_PERMITTED = 42205
_FORGET_MISSING_AFTER_S = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SchemaReference(JsonDocument):
    """A reference to another schema: the `name` that the schema uses for it, and its `subject` and `version`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as the registry stores it.

    Attributes:
        kind: AVRO, JSON or PROTOBUF.
        text: the schema's own language.
        references: other registered schemas that it uses.
    """

    kind: str
    text: str
    references: tuple[SchemaReference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As in the API. The type of Avro is omitted, because old registries know no other."""
        made: dict[str, Any] = {"schema": self.text}
        if self.kind != AVRO:
            made["schemaType"] = self.kind
        if self.references:
            made["references"] = [reference.to_json() for reference in self.references]
        return made


class SubjectVersion(NamedTuple):
    """A schema under a subject."""

    subject: str
    version: int
    schema_id: int
    schema: SchemaText


class SchemaRegistryClient:
    """Queries one registry. Caches answers that cannot change, and unknown ids for a minute."""

    def __init__(self, parsed: Mapping[str, Any], raw: Mapping[str, str]) -> None:
        """`parsed`: values of `settings.shared_keys()`; `raw`: all given keys.

        Raises:
            ConfigError: a key that cannot be used.
        """
        self._connection = RegistryConnection(parsed, raw)
        self._limit = RegistryConfig.max_cached_schemas.of(parsed)
        self._latest_ttl_s = RegistryConfig.latest_ttl_s.of(parsed)
        self._by_id: dict[int, SchemaText] = {}
        self._missing: dict[int, tuple[float, DataError]] = {}
        self._ids: dict[tuple[str, SchemaText, bool], int] = {}
        self._lookups: dict[tuple[str, SchemaText, bool, bool], SubjectVersion | None] = {}
        self._versions: dict[tuple[str, int], SubjectVersion] = {}
        self._latest: dict[str, tuple[float, SubjectVersion]] = {}

    def schema(self, schema_id: int) -> SchemaText:
        """The schema of an id.

        Raises:
            DataError: the registry does not know the id.
        """
        known = self._by_id.get(schema_id)
        if known is not None:
            return known
        asked_at, error = self._missing.get(schema_id, (0.0, None))
        # Thousands of records may have the same unknown id, and each would request it.
        if error is not None and time.monotonic() - asked_at < _FORGET_MISSING_AFTER_S:
            raise DataError(error.message, code=error.code, suggestion=error.suggestion)
        answer = self._connection.request("GET", f"/schemas/ids/{schema_id}", access=f"read the schema {schema_id}")
        if answer.is_absence:
            error = DataError(
                f"The Schema Registry has no schema with the id {schema_id}: {answer.message}; error code: "
                f"{answer.error_code}.",
                code="data.schema_id",
                suggestion="The producer used another registry, or the schema was deleted.",
            )
            _keep(self._missing, schema_id, (time.monotonic(), error), self._limit)
            raise error
        found = _read(answer, f"the schema {schema_id}", schema_of_json)
        _keep(self._by_id, schema_id, found, self._limit)
        return found

    def subjects_of(self, schema_id: int) -> list[dict[str, Any]]:
        """Under which subjects, and as which version, the schema of an id is registered: `{"subject", "version"}`.

        Not kept: subjects are added. A registry older than 5.5 does not know the request: [].
        """
        path, access = f"/schemas/ids/{schema_id}/versions", f"read the subjects of schema {schema_id}"
        answer = self._connection.request("GET", path, access=access)
        if answer.is_absence:
            return []
        return _read(
            answer,
            f"the subjects of schema {schema_id}",
            lambda found: [{"subject": str(one["subject"]), "version": int(one["version"])} for one in found],
        )

    def reach(self) -> None:
        """Ask for something cheap.

        Raises:
            ConnectError: it refused, or did not answer.
        """
        self._connection.request("GET", "/schemas/types", access="read the types of schemas")

    def referenced(self, schema: SchemaText) -> dict[str, SchemaText]:
        """All schemas that this one uses, directly or not: name to schema, each after the schemas that it uses.

        Raises:
            DataError: a reference cannot be resolved.
        """
        found: dict[str, SchemaText] = {}
        self._collect(schema, found, {}, set())
        return found

    def _collect(
        self,
        schema: SchemaText,
        found: dict[str, SchemaText],
        sources: dict[str, SchemaReference],
        entered: set[tuple[str, int]],
    ) -> None:
        for reference in schema.references:
            place = (reference.subject, reference.version)
            used = self.version(*place).schema
            if place not in entered:
                entered.add(place)
                self._collect(used, found, sources, entered)
            known = found.get(reference.name)
            if known is None:
                found[reference.name], sources[reference.name] = used, reference
            elif known.text != used.text:
                self._choose(found, sources, reference, used)

    @staticmethod
    def _choose(
        found: dict[str, SchemaText],
        sources: dict[str, SchemaReference],
        reference: SchemaReference,
        used: SchemaText,
    ) -> None:
        """Two different schemas have one name; only in Protobuf does the newer version read what both describe."""
        name, other = reference.name, sources[reference.name]
        if used.kind != PROTOBUF or other.subject != reference.subject:
            raise _ambiguous_reference(other, reference)
        if reference.version > other.version:
            found[name], sources[name] = used, reference

    def register(self, subject: str, schema: SchemaText, normalize: bool = False) -> int:
        """Register the schema under the subject unless it is already registered; returns its id.

        Raises:
            SchemaError: incompatible with what the subject has, or not a valid schema.
            AccessError: the registry is in read-only mode.
            UnavailableError: something other than a registry answered.
        """
        key = (subject, schema, normalize)
        known = self._ids.get(key)
        if known is not None:
            return known
        path = f"/subjects/{segment(subject)}/versions{_query(normalize=normalize)}"
        access = f"register a schema under the subject {subject}"
        answer = self._connection.request("POST", path, schema.to_json(), access=access)
        if not answer.is_ok:
            raise _refused_schema(subject, answer)
        schema_id = _read(answer, f"the registration under {subject}", lambda found: int(found["id"]))
        _keep(self._ids, key, schema_id, self._limit)
        return schema_id

    def lookup(
        self, subject: str, schema: SchemaText, normalize: bool = False, deleted: bool = False
    ) -> SubjectVersion | None:
        """The version of the schema under the subject, or None.

        Args:
            subject: where to look.
            schema: what to look for.
            normalize: compare normalized schemas.
            deleted: also find soft-deleted versions.
        """
        key = (subject, schema, normalize, deleted)
        if key in self._lookups:
            return self._lookups[key]
        path = f"/subjects/{segment(subject)}{_query(normalize=normalize, deleted=deleted)}"
        answer = self._connection.request("POST", path, schema.to_json(), access=f"read the subject {subject}")
        if answer.is_absence:
            return None
        found = _read(answer, f"the subject {subject}", lambda found: _subject_version(found, subject))
        _keep(self._lookups, key, found, self._limit)
        return found

    def version(self, subject: str, version: int) -> SubjectVersion:
        """One version of a subject, even a deleted one, because references may name it.

        Raises:
            DataError: there is none.
        """
        known = self._versions.get((subject, version))
        if known is not None:
            return known
        found = self._subject_version(subject, str(version), _query(deleted=True))
        _keep(self._versions, (subject, version), found, self._limit)
        return found

    def latest(self, subject: str) -> SubjectVersion:
        """The latest version of a subject, requested again after `latest.cache.ttl.sec`.

        Raises:
            DataError: the subject has none.
        """
        asked_at, known = self._latest.get(subject, (0.0, None))
        if known is not None and time.monotonic() - asked_at < self._latest_ttl_s:
            return known
        found = self._subject_version(subject, "latest", "")
        _keep(self._latest, subject, (time.monotonic(), found), self._limit)
        return found

    def _subject_version(self, subject: str, version: str, query: str) -> SubjectVersion:
        path = f"/subjects/{segment(subject)}/versions/{version}{query}"
        answer = self._connection.request("GET", path, access=f"read the subject {subject}")
        if answer.is_absence:
            raise DataError(
                f"The Schema Registry has no version {version} of the subject {subject}: {answer.message}; "
                f"error code: {answer.error_code}.",
                code="data.subject",
                suggestion="Register the schema first, or set auto.register.schemas=true.",
            )
        return _read(answer, f"the subject {subject}", lambda found: _subject_version(found, subject))


def open_registry(prefix: str, settings: Mapping[str, str]) -> SchemaRegistryClient:
    """A client for `settings_to_reach`.

    Raises:
        ConfigError: a setting is wrong; it is named with the prefix.
    """
    try:
        return SchemaRegistryClient(shared_keys().parse(settings), settings)
    except ConfigError as error:
        raise ConfigError(
            f"{error.message} The key begins with {prefix} here.",
            code=error.code,
            suggestion=error.suggestion,
            config_path=f"{prefix}{error.config_path}",
        ) from error


def _ambiguous_reference(one: SchemaReference, other: SchemaReference) -> SchemaError:
    return SchemaError(
        f"The schema refers to two different schemas with the name {one.name}: version {one.version} of the subject "
        f"{one.subject} and version {other.version} of the subject {other.subject}. Only one of them was used to write "
        "the message, and which one is unknown.",
        code="data.schema_reference",
        suggestion="Register the schema again, with references that lead to one version of each name. Messages that "
        "name the old schema can be copied with ByteArrayConverter.",
    )


def _keep(cache: dict[Any, Any], key: Any, value: Any, limit: int) -> None:
    while len(cache) >= limit:
        del cache[next(iter(cache))]
    cache[key] = value


def _query(**flags: bool) -> str:
    given = "&".join(f"{name}=true" for name, value in flags.items() if value)
    return f"?{given}" if given else ""


def _read(answer: RegistryResponse, what: str, read: Callable[[Any], T]) -> T:
    if answer.is_ok:
        try:
            return read(answer.document)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass  # It does not match the API: reported below, like other refusals.
    if answer.is_refusal(_UNPROCESSABLE):
        raise SchemaError(f"The Schema Registry refuses {what}: {answer.message}; error code: {answer.error_code}.")
    raise _unusable(what, answer)


def _unusable(what: str, answer: RegistryResponse) -> UnavailableError:
    """The error for an answer that is no registry's, usually the page of a proxy; a later run may reach the registry.

    It fails the run: such an answer says nothing about the record.
    """
    return UnavailableError(
        f"The Schema Registry's answer about {what} cannot be used: {answer.message}. Every answer of a Schema "
        "Registry is JSON as its API defines it, and every refusal has an error code.",
        code="registry.answer",
        suggestion=(
            f"Check that {RegistryConfig.urls} is the base URL of a Schema Registry, with its path if it has one (such"
            " as /apis/ccompat/v7), and that a proxy in front of it reaches it."
        ),
        config_path=RegistryConfig.urls.name,
    )


def schema_of_json(found: Any) -> SchemaText:
    """A schema as the API shows it.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    text, kind = found["schema"], found.get("schemaType") or AVRO
    if not (isinstance(text, str) and text.strip() and isinstance(kind, str)):
        raise TypeError("schema and schemaType are text")
    references = tuple(
        SchemaReference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in found.get("references") or ()
    )
    return SchemaText(kind, text, references)


def _subject_version(found: Any, subject: str) -> SubjectVersion:
    return SubjectVersion(found.get("subject", subject), int(found["version"]), int(found["id"]), schema_of_json(found))


def _refused_schema(subject: str, answer: RegistryResponse) -> ConnectError:
    if answer.is_refusal(_CONFLICT):
        return SchemaError(
            f"Schema being registered is incompatible with an earlier schema for subject {subject}: {answer.message}; "
            f"error code: {answer.error_code}.",
            code="data.schema_incompatible",
            suggestion=(
                "Change the schema so that the subject's compatibility level allows it (a new field needs a default), "
                "or change that level in the registry."
            ),
        )
    if answer.error_code == _NOT_PERMITTED:
        # The state of the registry, not of the schema: it must not send valid records to the dead letter queue.
        return AccessError(
            f"The Schema Registry does not register schemas under {subject} now: {answer.message}; error code: "
            f"{answer.error_code}.",
            code="registry.permission",
            suggestion="Set the registry, or the subject, to the mode READWRITE.",
            config_path=RegistryConfig.urls.name,
        )
    if not (answer.is_refusal(_BAD_REQUEST) or answer.is_refusal(_UNPROCESSABLE)):
        return _unusable(f"the registration under {subject}", answer)
    return SchemaError(
        f"The Schema Registry refuses the schema for the subject {subject}: {answer.message}; error code: "
        f"{answer.error_code}.",
        code="data.schema_refused",
        suggestion="Compare the schema with the registry's message.",
    )
