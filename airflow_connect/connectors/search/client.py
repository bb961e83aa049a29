"""HTTP: one request at a time for each thread; a node that does not answer is replaced by another one.

Elastic's own HTTP layer chooses nodes and keeps connections; it speaks to OpenSearch as well, because, unlike Elastic's
client, it does not look which product answers. Repetitions are not its business: see `sending.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from airflow_connect.errors import AccessError, SearchError, UnavailableError, missing_package

if TYPE_CHECKING:
    from elastic_transport import NodeConfig
    from urllib3 import ProxyManager

    from airflow_connect.connectors.search.config import ConnectionConfig

_TEMPORARY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE,
              HTTPStatus.GATEWAY_TIMEOUT)  # fmt: skip
_LONGEST_TEXT = 500
_NO_CLUSTER = "_na_"
"""What a node says that has not joined a cluster yet."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says: status, and the decoded JSON, or text if it is none."""

    status: int
    body: Any

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def kind(self) -> str:
        """The type of the error, such as `index_not_found_exception`, or ""."""
        error = self._error
        return str(error.get("type") or "") if isinstance(error, dict) else ""

    @property
    def reason(self) -> str:
        """The server's own words, on one line."""
        error = self._error
        if isinstance(error, dict):
            return reason_of(error)
        return " ".join(str(error or self.body or "").split())[:_LONGEST_TEXT]

    @property
    def _error(self) -> Any:
        return self.body.get("error") if isinstance(self.body, dict) else None


def reason_of(error: dict[str, Any]) -> str:
    """An error's type and reason, with those of its causes, on one line, cut for messages."""
    return cut(words_of(error))


def cut(words: str) -> str:
    """As much of them as a message has."""
    return words[:_LONGEST_TEXT].rstrip(".")


def words_of(error: dict[str, Any]) -> str:
    """All of it: what follows depends on words that may come after a long id, or a long name of a field."""
    texts: list[str] = []
    cause: Any = error
    while isinstance(cause, dict) and len(texts) < 4:
        texts.append(f"{cause.get('type')}: {cause.get('reason')}")
        cause = cause.get("caused_by")
    return " ".join("; ".join(texts).split())


class SearchClient:
    """Sends requests. May be used by several threads."""

    def __init__(self, config: ConnectionConfig) -> None:
        """Connects to nothing yet.

        Raises:
            MissingPackageError: elastic-transport is not installed.
        """
        try:
            import elastic_transport
        except ImportError:
            raise missing_package(
                "elastic-transport", "search", purpose="The search sink", where="where the driver and executors run"
            ) from None
        self._config = config
        self._errors = elastic_transport.TransportError
        self._transport = _transport(config)

    @property
    def name(self) -> str:
        """The nodes, for messages."""
        return ",".join(f"{node.scheme}://{node.host}:{node.port}" for node in self._config.nodes)

    def send(self, method: str, path: str, body: bytes | None = None, *, is_bulk: bool = False) -> Answer:
        """Send one request.

        Raises:
            UnavailableError: there was no answer.
            AccessError: user and password, or a certificate, or a permission, are not accepted.
        """
        from urllib3 import Timeout

        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/x-ndjson" if is_bulk else "application/json"
        timeout: Any = Timeout(connect=self._config.connect_timeout_s, read=self._config.read_timeout_s)
        try:
            answer = self._transport.perform_request(method, path, body=body, headers=headers, request_timeout=timeout)
        except self._errors as error:
            raise UnavailableError(
                f"{self.name} did not answer{_stated(str(error.__cause__ or error.message))}.",
                code="search.unavailable",
                suggestion="Check that the server runs and that connection.url, TLS and proxy settings are right. A"
                " larger read.timeout.ms gives it more time; if it is 0, so does a larger flush.timeout.ms.",
            ) from None
        found = Answer(answer.meta.status, _decoded(answer.body))
        if found.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED) or (
            found.status == HTTPStatus.FORBIDDEN and found.kind in ("security_exception", "" if not is_bulk else None)
        ):
            raise AccessError(
                f"{self.name} refused {method} {path.partition('?')[0]} ({found.status}){_stated(found.reason)}.",
                code="search.denied",
                suggestion="Check connection.username and connection.password, or connection.api.key, and what this"
                " user may do; proxy.username and proxy.password if the status is 407.",
            )
        return found

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request with JSON, which is not part of a bulk.

        Raises:
            UnavailableError: no answer, or one that means that a later try may succeed.
            AccessError: see `send`.
        """
        answer = self.send(method, path, None if body is None else orjson.dumps(body))
        if answer.status in _TEMPORARY:
            raise UnavailableError(
                f"{self.name} cannot execute {method} {path.partition('?')[0]} now ({answer.status})"
                f"{_stated(answer.reason)}.",
                code="search.unavailable",
                suggestion="Look at the health of the cluster; a later run tries again.",
            )
        return answer

    def check_one_cluster(self) -> list[str]:
        """Compare the clusters of all nodes: requests go to one after the other, and each has its own documents.

        A node that does not answer, or not as a search server, is not compared.

        Returns:
            Those that refuse to say it, for a note.

        Raises:
            SearchError: they are of several clusters.
        """
        from urllib3 import Timeout

        timeout: Any = Timeout(connect=self._config.connect_timeout_s, read=self._config.read_timeout_s)
        nodes = list(self._transport.node_pool.all())
        clusters: dict[str, str] = {}
        untold: list[str] = []
        for node in nodes if len(nodes) > 1 else ():
            try:
                answer = node.perform_request("GET", "/", request_timeout=timeout)
            except self._errors:
                continue  # Requests go to the others, too.
            body = _decoded(answer.body)
            uuid = body.get("cluster_uuid") if isinstance(body, dict) else None
            if isinstance(uuid, str) and uuid not in ("", _NO_CLUSTER):
                clusters.setdefault(uuid, node.base_url)
            elif answer.meta.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                untold.append(str(node.base_url))
        if len(clusters) > 1:
            raise SearchError(
                f"The nodes of connection.url are of {len(clusters)} clusters: {', '.join(clusters.values())} have"
                " different ones. Each would get a part of the documents.",
                code="search.clusters",
                suggestion="Name the nodes of one cluster only; another connector can write to the other one.",
                config_path="connection.url",
            )
        return untold

    def refused(self, what: str, answer: Answer) -> SearchError:
        """The error for a request that the server refuses for good."""
        return SearchError(
            f"{self.name} refused to {what} ({answer.status}){_stated(answer.reason)}.",
            code="search.refused",
            suggestion="The server's own message gives the reason. If it is none of a search server, a proxy or a"
            " firewall in between does not let the request through.",
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class _Plain:
    """Passes bytes on as they are: requests are JSON already, and answers are decoded by orjson."""

    def dumps(self, data: Any) -> bytes:
        return bytes(data)

    def loads(self, data: bytes) -> Any:
        return data


def _decoded(body: Any) -> Any:
    if not body:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace") if isinstance(body, bytes) else str(body)


def _stated(reason: str) -> str:
    """A reason as the end of a sentence; nothing if there is none, as for answers to HEAD."""
    text = " ".join(reason.split())[:_LONGEST_TEXT].rstrip(".")
    return f": {text}" if text else ""


def _pool(config: ConnectionConfig, node: NodeConfig) -> Any:
    """The connections to a node.

    Those that elastic-transport makes load certifi's authorities into the TLS context, beside those of the trust store.
    """
    import urllib3

    options: dict[str, Any] = {"maxsize": node.connections_per_node, "block": True}
    if node.scheme == "https":
        assert config.tls is not None
        options["ssl_context"] = config.tls
        if not config.tls.check_hostname:
            options["assert_hostname"] = False
    if config.proxy is not None:
        return _ProxiedPool(config.proxy.manager(**options), f"{node.scheme}://{_bracketed(node.host)}:{node.port}")
    pool_class: Any = urllib3.HTTPSConnectionPool if node.scheme == "https" else urllib3.HTTPConnectionPool
    return pool_class(node.host, node.port, **options)


class _ProxiedPool:
    """The connections to one node through a proxy, with the two methods of a pool that a node calls."""

    def __init__(self, manager: ProxyManager, origin: str) -> None:
        self._manager = manager
        self._origin = origin

    def urlopen(self, method: str, target: str, **options: Any) -> Any:
        return self._manager.urlopen(method, self._origin + target, redirect=False, **options)

    def close(self) -> None:
        self._manager.clear()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _transport(config: ConnectionConfig) -> Any:
    from elastic_transport import NodeConfig, Transport, Urllib3HttpNode

    class Node(Urllib3HttpNode):
        """Connects as the configuration says: elastic-transport knows no proxy, and trusts more authorities."""

        def __init__(self, node: NodeConfig) -> None:
            super().__init__(node)
            self.pool = _pool(config, node)

    plain: Any = _Plain()
    nodes = [
        NodeConfig(
            node.scheme,
            node.host,
            node.port,
            path_prefix=node.path,
            headers={"authorization": config.authorization} if config.authorization else {},
            connections_per_node=config.in_flight + 1,
            http_compress=config.compresses,
            ssl_context=config.tls if node.scheme == "https" else None,
        )
        for node in config.nodes
    ]
    mimetypes = ("application/json", "application/x-ndjson", "text/plain", "text/html", "")
    return Transport(
        nodes,
        node_class=Node,
        serializers=dict.fromkeys(mimetypes, plain),
        max_retries=0,
        retry_on_status=(),
        meta_header=False,
        dead_node_backoff_factor=0.1,
        max_dead_node_backoff=5,
    )
