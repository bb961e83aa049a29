"""Where the documents of a topic go: names, and what must exist before the first one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_connect.api.schema import DATE, TIME
from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.answers import TOO_MANY_FIELDS
from airflow_connect.connectors.search.indices import (
    LOOK,
    UNSEEN,
    UNSEEN_UPSERTS,
    Indices,
    gone_meanwhile,
    is_of_stream,
    newest,
)
from airflow_connect.connectors.search.keys import SearchKeys as Keys
from airflow_connect.connectors.search.mapping import (
    DEBEZIUM_UNITS,
    chosen_by_server,
    dates_in,
    follows_values,
    is_date,
    mapping_of,
)
from airflow_connect.errors import AccessError, DataError, SearchError, UnavailableError
from airflow_connect.retrying import Retry

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.search.client import Answer, SearchClient
    from airflow_connect.connectors.search.config import SearchSinkConfig

LONGEST_NAME = 255
LONGEST_NAMESPACE = 100
TOMBSTONES_KEPT = "1h"
"""For how long a new index knows the versions of deleted documents: a late write must not bring one back."""
LONGEST_WAIT_MS = 60_000
"""How long a server waits for shards unless a request says otherwise."""
# The fields to return of a bulk answer: without it, the server repeats shards, versions and numbers of every document.
_ANSWER = (
    "filter_path=errors,error,status,items.*.status,items.*.error,items.*.result,items.*.failure_store,items.*._index"
    ",items.*._id"
)

_UNSEEN_EARLIER = (
    "So the run cannot see whether an interrupted run has written documents into an earlier index of {name}, which are"
    " there twice then."
)
_SHOWN = 10
_NOT_SINCE_1970 = {
    DATE: ("date", "days since 1970", "2020-01-01"),
    TIME: ("time of day", "milliseconds since midnight", "each time"),
}
_OF_CONNECT = (
    "dates of Kafka Connect, of which documents have the days since 1970, as with Confluent's sink: the server takes"
    " them for milliseconds, so 2020-01-01 is found in 1970. Use the transformation TimestampConverter, or a mapping of"
    " integers."
)
_OF_DEBEZIUM = (
    "dates and times of Debezium, of which documents have the {units}, as with Confluent's sink: the server takes them"
    " for milliseconds since 1970, so they are found at another time. Set time.precision.mode=connect for Debezium's"
    " connector, use the transformation TimestampConverter, or a mapping of long."
)
# Whether something exists. HEAD would do, but its answer cannot say why it is refused.
_ALIASES = "?filter_path=error,status,*.aliases"
_REQUIRE_ALIAS = "&require_alias=true"
"""Or the server would create an index with the name of an alias that is gone, such as while it is being moved."""


@dataclass(frozen=True, slots=True)
class Target:
    """An index, a data stream or an alias.

    Attributes:
        name: as the server knows it.
        bulk_path: path and query of its bulk requests.
    """

    name: str
    bulk_path: str


class Targets:
    """The targets of a task; each is looked for, or created, once."""

    def __init__(self, config: SearchSinkConfig, client: SearchClient) -> None:
        """Sends no request yet."""
        self._config = config
        self._client = client
        self._found: dict[str, Target] = {}
        self._last: dict[str, Any] = {}  # topic -> schema of its last record
        self._schemas: dict[str, list[Schema | None]] = {}
        self._indices: dict[str, Indices] = {}
        self._has_keys: dict[str, bool] = {}
        self.created: list[str] = []
        """Indices and data streams that were missing."""
        self.notes: list[str] = []
        """Sentences for the report."""
        self.written: dict[str, dict[str, str]] = {}
        """Of each alias the indices that have got documents, with their ids."""
        self.known: dict[str, set[str]] = {}
        """The indices of each target, as they were seen; empty for one that cannot be seen."""

    def of(self, topic: str, schema: Schema | None, *, has_value: bool = True) -> Target:
        """The target of a topic, which exists, with a mapping.

        Args:
            topic: of the record, after transformations.
            schema: of the value, for a mapping that is missing.
            has_value: without one, no mapping is created.

        Raises:
            DataError: the topic has no target.
            SearchError: it cannot be created, or does not exist.
            UnavailableError, AccessError: from the server.
        """
        target = self._found.get(topic)
        if target is None:
            target = self._found[topic] = self._prepared(topic)
            self._look(target.name, topic)
        if has_value and self._last.get(topic, self) is not schema:
            self._see_schema(target.name, topic, schema)
            self._last[topic] = schema
        return target

    def _see_schema(self, name: str, topic: str, schema: Schema | None) -> None:
        """Once for each schema of a topic, of which the first one becomes the mapping."""
        seen = self._schemas.setdefault(topic, [])
        if schema in seen:
            return
        follows = self._config.has_schema(topic)
        if follows:
            self._ensure_mapping(name, schema, is_first=not seen)
        if not seen:
            compacts = self._config.compacts_maps if follows else None
            self._name_dates(name, list(dict.fromkeys(dates_in(schema, compacts_maps=compacts))))
            self._name_times_of_1970(name, schema)
        seen.append(schema)

    @property
    def ids(self) -> dict[str, str]:
        """The id of each index that is a target itself, no alias and no data stream."""
        return {name: found.ids[name] for name, found in self._indices.items() if name in found.ids}

    @property
    def behind(self) -> dict[str, dict[str, str]]:
        """The newest indices of each alias and each data stream, with their ids."""
        return {name: newest(found.ids) for name, found in self._indices.items() if found.ids and name not in found.ids}

    def ids_of(self, name: str) -> list[str]:
        """The ids of the indices of a target; [] if they could not be seen."""
        return list(self._indices[name].ids.values()) if name in self._indices else []

    def check_are_there(self, written: Callable[[str], Collection[str]]) -> None:
        """Make sure that the indices that were written are still there; those that came meanwhile get their notes.

        Args:
            written: gives the indices of a target that have got documents, if they have other names.

        Raises:
            SearchError: one of them was deleted meanwhile.
            UnavailableError, AccessError: from the server.
        """
        for name, before in self._indices.items():
            now = self.shown(name) if before.ids else before
            self.known[name] = {*self.known.get(name, ()), *before.ids, *now.ids}
            if now.ids.keys() - before.ids.keys():
                self._note(name, now, has_keys=self._has_keys[name] and len(before.ids) == 1)
            if before.is_gone(now) or self._has_lost(name, before, now, written(name)):
                raise gone_meanwhile(name, "this task")

    def _has_lost(self, name: str, before: Indices, now: Indices, written: Collection[str]) -> bool:
        """Whether an index that has got documents is not there any more, or is another one.

        Not of a data stream: a policy may delete those to which it no longer writes.

        Args:
            name: of the target.
            before: its indices when the task began to write to it.
            now: those that it has now.
            written: names of those that have got documents since the last call, if they are not that of the target.
        """
        own = self.written.setdefault(name, {})
        for index in written if before.ids else ():
            if is_of_stream(index):
                continue
            found = before.ids.get(index) or now.ids.get(index)
            if found is not None:
                own.setdefault(index, found)
            elif not self._exists(index):  # Else a pipeline has sent documents there.
                return True
        return any(now.ids.get(index) != found for index, found in own.items())

    def _exists(self, index: str) -> bool:
        """Whether there is an index; True if the user may not see it."""
        try:
            return self._call("GET", f"/{quote(index, '')}{_ALIASES}").status != HTTPStatus.NOT_FOUND
        except AccessError:
            return True

    def look_for_earlier(self, name: str, ids: Sequence[str]) -> None:
        """Name documents that an interrupted run has written into an earlier index: they will be there twice.

        Args:
            name: of the target.
            ids: of the first documents of a partition, which are offsets that no run has committed.

        Raises:
            UnavailableError: from the server.
        """
        found = self._indices.get(name)
        older = found.earlier(name) if found is not None else []
        if not older:
            return
        asked = {"docs": [{"_index": index, "_id": one, "_source": False} for index in older for one in ids]}
        try:  # By ids, which are found at once, not only after a refresh.
            answer = self._call("POST", "/_mget?filter_path=error,status,docs._index,docs._id,docs.found", asked)
        except AccessError as error:
            self._say(f"{error.message} {_UNSEEN_EARLIER.format(name=name)}")
            return
        documents = answer.body.get("docs", ()) if answer.is_success and isinstance(answer.body, dict) else None
        if documents is None:
            self._say(f"The server did not show earlier indices of {name}. {_UNSEEN_EARLIER.format(name=name)}")
            return
        first = next((one for one in documents if one.get("found")), None)
        if first is not None:
            self._say(
                f"{first['_index']}, an earlier index of {name}, has the document {first['_id']}, whose record no run"
                " has committed: an interrupted run has written it, and maybe others after it. This run writes their"
                f" records again, and {name} writes to another index now, so that these documents are there twice. If"
                " that matters, delete those from this one on in the earlier index."
            )

    def _say(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _look(self, name: str, topic: str) -> None:
        """Learn which indices a target has, and what is to be said about them."""
        try:
            found = self._indices[name] = self.shown(name)
        except AccessError as error:
            self.notes.append(f"{error.message} {UNSEEN_UPSERTS if self._config.upserts else UNSEEN}")
            return
        self._has_keys[name] = self._config.ids_of(topic) == keys.BY_KEY
        self._note(name, found, has_keys=self._has_keys[name])

    def _note(self, name: str, found: Indices, *, has_keys: bool) -> None:
        sentences = found.notes(name, has_keys=has_keys, upserts=self._config.upserts)
        self.notes += [sentence for sentence in sentences if sentence not in self.notes]

    def shown(self, name: str) -> Indices:
        """The indices of a target, as they are now.

        Raises:
            SearchError, UnavailableError, AccessError: from the server.
        """
        answer = self._call("GET", f"/{quote(name, '')}{LOOK}")
        if not answer.is_success and answer.status != HTTPStatus.NOT_FOUND:
            raise self._client.refused(f"show {name}", answer)
        return Indices.of(answer)

    def _prepared(self, topic: str) -> Target:
        if self._config.resources:
            name = self._config.resources.get(topic)
            if name is None:
                raise DataError(
                    f"The topic {topic} is not in {Keys.resource_mapping}.",
                    code="search.no_resource",
                    suggestion=f"Add {topic}:<resource>. A transformation may have renamed the topic.",
                )
            is_alias = self._config.resource_usage in (keys.ALIAS_INDEX, keys.ALIAS_DATASTREAM)
            answer = self._existing(name, is_alias=is_alias)
            return self._target(name, _REQUIRE_ALIAS if is_alias or _is_alias(answer, name) else "")
        if self._config.is_stream:
            name = stream_name(self._config.stream_prefix, self._config.stream_namespace, topic)
        else:
            name = index_name(topic)
        return self._target(name, _REQUIRE_ALIAS if self._ensure_exists(name) else "")

    def _target(self, name: str, options: str) -> Target:
        """The server waits for missing shards half as long as we wait for it, so that it can still name them."""
        wait_ms = min(LONGEST_WAIT_MS, max(1, round(self._config.connection.read_timeout_s * 500)))
        options += f"&timeout={wait_ms}ms"
        return Target(name, f"/{quote(name, '')}/_bulk?{_ANSWER}{options}")

    def _call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request, and again while there is no answer; see `SearchClient.call`."""
        retry = Retry(self._config.backoff, retries=self._config.retries)
        while True:
            try:
                return self._client.call(method, path, body)
            except UnavailableError:
                if not retry.pause():
                    raise

    def _existing(self, name: str, *, is_alias: bool) -> Answer:
        path = f"/_alias/{quote(name, '')}" if is_alias else f"/{quote(name, '')}"
        answer = self._call("GET", path + _ALIASES)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise SearchError(
                f"The {'alias' if is_alias else 'resource'} {name} of {Keys.resource_mapping} does not exist.",
                code="search.missing",
                suggestion=f"Create it, or correct {Keys.resource_mapping}.",
            )
        return answer

    def _ensure_exists(self, name: str) -> bool:
        """Create what is missing; returns whether the name is that of an alias."""
        found = self._call("GET", f"/{quote(name, '')}{_ALIASES}")
        if found.is_success:
            return _is_alias(found, name)
        if found.status != HTTPStatus.NOT_FOUND:
            raise self._client.refused(f"show {name}", found)  # It may exist, such as with a block of metadata.
        documents = self._config
        if documents.is_stream:
            what, answer = "create the data stream", self._call("PUT", f"/_data_stream/{quote(name, '')}")
        else:
            settings = {"index.gc_deletes": TOMBSTONES_KEPT} if documents.on_null == keys.DELETE else {}
            body = {"settings": settings} if settings else {}
            what, answer = "create the index", self._call("PUT", f"/{quote(name, '')}", body)
        if not answer.is_success and answer.kind != "resource_already_exists_exception":
            raise SearchError(
                f"{self._client.name} refused to {what} {name} ({answer.status}): {answer.reason}.",
                code="search.create",
                suggestion="A data stream needs an index template with data_stream that matches its name."
                if documents.is_stream
                else "Create the index yourself, or check what the user may do.",
            )
        if answer.is_success:
            self.created.append(name)
        return False

    def _name_dates(self, name: str, dates: Sequence[tuple[str, str]]) -> None:
        """Name numbers of other units that the server takes for milliseconds; `dates`: see `dates_in`."""
        shown = self._call("GET", f"/{quote(name, '')}/_mapping").body if dates else None
        mappings = [index.get("mappings") for index in shown.values()] if isinstance(shown, dict) else []
        found = [one for one in dates if any(is_date(mapping, one[0]) for mapping in mappings)]
        days = [path for path, kind in found if kind == DATE]
        others = [(path, DEBEZIUM_UNITS[kind]) for path, kind in found if kind != DATE]
        units = " or ".join(dict.fromkeys(unit for _, unit in others))
        for what, paths in ((_OF_CONNECT, days), (_OF_DEBEZIUM.format(units=units), [path for path, _ in others])):
            if paths:
                self._say(f"{name} has the type date for {what} Fields: {', '.join(paths)}.")

    def _name_times_of_1970(self, name: str, schema: Schema | None) -> None:
        """Name a date or time of day from which `@timestamp` is taken; documents have all fields of a schema."""
        known = {field.name: field.schema.name for field in schema.fields} if schema is not None else {}
        first = next((field for field in self._config.timestamp_fields if field in known), "")
        kind = known.get(first) or ""
        if kind in DEBEZIUM_UNITS:
            self._say(
                f"{Keys.timestamp_fields} names a number of Debezium ({first}), of which documents have the"
                f" {DEBEZIUM_UNITS[kind]}. The server takes the @timestamp of {name} for milliseconds since 1970, so it"
                " is another time. Set time.precision.mode=connect for Debezium's connector, use the transformation"
                " TimestampConverter, or another field."
            )
        if found := _NOT_SINCE_1970.get(kind):
            what, unit, example = found
            self._say(
                f"{Keys.timestamp_fields} names a {what} of Kafka Connect ({first}), of which documents have the"
                f" {unit}. The server takes the @timestamp of {name} for milliseconds since 1970, so {example} is found"
                " in 1970. Use the transformation TimestampConverter, or another field."
            )

    def _name_unmapped(self, name: str, schema: Schema | None, mappings: Sequence[Mapping[str, Any]]) -> None:
        """Name the fields of a schema to which the server will give another type than a new mapping would have."""
        if schema is None or not mappings or not all(map(follows_values, mappings)):
            return
        wanted: Any = mapping_of(schema, compacts_maps=self._config.compacts_maps)
        missing = [list(chosen_by_server(wanted, mapping)) for mapping in mappings]
        if found := [path for path in missing[0] if all(path in paths for paths in missing)]:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            self._say(
                f"{name} has a mapping without fields that the records have. As with Confluent's sink, only a missing"
                " mapping is created, from the schema of the first record, so the server chooses the types of the"
                " others by their values: long for dates, float for doubles, text for bytes. Documents are whole, but"
                " such a field cannot be searched as what it is. Add fields to the mapping before they are written."
                f" Fields: {', '.join(found[:_SHOWN])}{more}."
            )

    def _ensure_mapping(self, name: str, schema: Schema | None, *, is_first: bool) -> None:
        """Create a mapping from the first schema, if there is none; else name the fields that it does not have."""
        path = f"/{quote(name, '')}/_mapping"
        answer = self._call("GET", path)
        if not answer.is_success or not isinstance(answer.body, dict):
            raise self._client.refused(f"read the mapping of {name}", answer)
        mappings = [found for index in answer.body.values() if (found := index.get("mappings"))]
        if mappings or not is_first:
            self._name_unmapped(name, schema, mappings)
            return
        if schema is None:
            raise SearchError(
                f"The index {name} has no mapping, and none can be created, because the records have no schema.",
                code="search.no_schema",
                suggestion=f"Set {Keys.ignores_schema}=true, create the mapping, or use a converter with schemas.",
            )
        mapping: Any = mapping_of(schema, compacts_maps=self._config.compacts_maps)
        if "properties" not in mapping:
            return  # The values are not documents, which is reported for each record.
        put = self._call("PUT", path, mapping)
        if TOO_MANY_FIELDS in put.reason:
            raise SearchError(
                f"The schema of the records has more fields than {name} may have: {put.reason}.",
                code="search.mapping_limit",
                suggestion="Raise index.mapping.total_fields.limit of the index, remove fields by ReplaceField, or"
                f" create a mapping yourself, with dynamic=false, and set {Keys.ignores_schema}=true.",
            )
        if not put.is_success:
            raise self._client.refused(f"create the mapping of {name} from the schema of the first record", put)


def _is_alias(answer: Answer, name: str) -> bool:
    """Whether a name that exists is that of an alias of indices."""
    indices = answer.body.values() if answer.is_success and isinstance(answer.body, dict) else ()
    return any(isinstance(index, dict) and name in index.get("aliases", {}) for index in indices)


def index_name(topic: str) -> str:
    """The index of a topic, as Confluent's sink names it (ElasticsearchSinkTask.convertTopicToIndexName)."""
    name = topic.lower()[:LONGEST_NAME]
    if name.startswith(("-", "_")):
        name = name[1:]
    return name.replace(".", "dot") if name in (".", "..") else name


def stream_name(prefix: str, namespace: str, topic: str) -> str:
    """The data stream of a topic: `{data.stream.type}-{data.stream.dataset}-{namespace}`."""
    filled = namespace.replace(keys.TOPIC_PLACEHOLDER, topic.lower())[:LONGEST_NAMESPACE]
    return f"{prefix}-{filled}"
