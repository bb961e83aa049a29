"""What Elasticsearch would see: OpenSearch answers, behind a proxy that adds Elasticsearch's header."""

from __future__ import annotations

import re

import pytest

from airflow_connect.api import schema as s
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.servers.search_proxy import search_proxy

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("product", ["Elasticsearch", ""])
def test_product_is_not_asked_for_and_requests_are_those_of_every_version(opensearch, unique_name, product):
    """Elastic's own client refuses a server without the header X-Elastic-Product, and asks for its version's types."""
    schema = s.struct(("n", s.INT64))
    log = [record(n, {"n": n}, key=f"k{n % 3}", schema=schema, topic=unique_name) for n in range(9)]
    log.append(record(9, None, key="k0", topic=unique_name))
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.product = product
        config = {"schema_ignore": "false", "behavior_on_null_values": "delete"}
        SearchTask(proxy.url, unique_name, **config).write(log)
        requests, headers = list(proxy.requests), list(proxy.headers)
    assert documents(opensearch, unique_name) == {"k1": {"n": 7}, "k2": {"n": 8}}
    allowed = {
        "GET": rf"/{unique_name}(/_mapping|\?filter_path=error,status,[a-z_*.,]+)",
        "PUT": rf"/{unique_name}(/_mapping)?",
        "POST": rf"/{unique_name}/_bulk\?filter_path=[a-z_*.,]+&timeout=\d+ms",
    }
    for method, path in requests:
        assert re.fullmatch(allowed[method], path), (method, path)
    for sent in headers:
        assert sent["accept"] == "application/json"
        assert sent.get("content-type") in (None, "application/json", "application/x-ndjson")
