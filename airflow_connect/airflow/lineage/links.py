"""Links of a task in Airflow's UI: what a run wrote, the history of its connector, its dead letters.

Airflow calls `get_link` where the task ran, keeps the URL as an XCom, and shows that one. So the classes are not listed
under `extra-links` of the provider: for a listed class it would call `get_link` in the API server, which knows no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from airflow.sdk import BaseOperatorLink

from airflow_connect.airflow.lineage.default_assets import default_assets
from airflow_connect.config.keys.sink import SinkKeys

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

_PAGES = "/plugin/kafka-connect/airflow-connect"
"""The pages inside Airflow's own, whose address shows which one is open."""
_CONSOLE = "https://console.aws.amazon.com/s3/buckets"


class WrittenObjectsLink(BaseOperatorLink):
    """The directory of an S3 sink in the console of AWS; no link for other stores, which have no page to lead to."""

    name = "Written objects"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The URL, or ""."""
        known = operator.lineage()
        if known.connector.get("store.url"):
            return ""
        found = [asset.uri for asset in default_assets(known.connector, known.worker)[1]]
        parts = [urlsplit(uri) for uri in found if uri.startswith("s3://")]
        if not parts:
            return ""
        # With several topics, the directory that all of them share.
        path = parts[0].path if len(parts) == 1 else parts[0].path.rpartition("/")[0]
        region = known.connector.get("s3.region")
        where = f"region={quote(str(region), safe='')}&" if region and "${" not in str(region) else ""
        prefix = quote(path.strip("/") + "/", safe="") if path.strip("/") else ""
        return f"{_CONSOLE}/{parts[0].netloc}?{where}prefix={prefix}"


class ConnectorHistoryLink(BaseOperatorLink):
    """The page of the connector: its runs, its lag, its offsets."""

    name = "History of runs"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The URL, or ""."""
        return _page_of(operator, ti_key)


class DeadLettersLink(BaseOperatorLink):
    """The dead letters of the connector, on the same page. No link if it has no dead letter queue."""

    name = "Dead letters"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The URL, or ""."""
        if not operator.lineage().connector.get(SinkKeys.dead_letter_topic.name):
            return ""
        page = _page_of(operator, ti_key)
        return f"{page}#dead-letters" if page else ""


def _page_of(operator: Any, ti_key: TaskInstanceKey | None) -> str:
    """The page that looks for the connector in the installations that this Airflow shows, and leads to it."""
    connector = operator.lineage().connector.get("name")
    if not connector:
        return ""
    dag_id = ti_key.dag_id if ti_key is not None else operator.dag_id
    return f"{_base_url()}{_PAGES}/of?{urlencode({'dag_id': dag_id, 'connector': str(connector)})}"


def problems_url() -> str:
    """The page *Problems*, for a message outside of Airflow; "" if Airflow's `[api] base_url` is not set."""
    base = _base_url()
    return f"{base}{_PAGES}/problems" if base else ""


def _base_url() -> str:
    from airflow.configuration import conf

    return (conf.get("api", "base_url", fallback="") or "").rstrip("/")
