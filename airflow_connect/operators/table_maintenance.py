"""Keeps the tables of an Iceberg sink small as an Airflow task."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_connect.counting import plural
from airflow_connect.operators.connector_task import ConnectorTask, redactor_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class IcebergMaintenanceOperator(ConnectorTask):
    """Expires old snapshots of the tables that an Iceberg sink fills; runs may go on meanwhile.

    What stays: young snapshots; the head of each branch, and tags; the last 16 runs of each connector; the snapshots of
    an open manifest; and all since the last run. Only metadata shrinks: files of expired snapshots, which compaction
    has replaced, are orphans for an engine to remove. It runs in this process, which needs the extra `iceberg`.

    Args:
        older_than: younger snapshots stay; None: `history.expire.max-snapshot-age-ms` of each table, or else 5 days.
        keep_last: of each branch, this many stay; None: `history.expire.min-snapshots-to-keep` of each table, or 1.
        dry_run: expire nothing; return what would be.
        kwargs: `config` or `config_file`, `worker`, `kafka_conn_id`, `aws_conn_id` and `worker_conn_id` as for
            `ConnectorOperator`, and what every operator has.

    Returns (XCom):
        `expired`, the number of snapshots; `dry_run`; and `tables`: the table's name to the numbers `snapshots`
        (before), `expired`, `young`, `needed`.

    Raises (when it runs):
        AirflowFailException: the connector is no Iceberg sink, or its configuration is wrong.
        UnavailableError: Kafka or the catalog does not answer; `retries` apply.
    """

    def __init__(
        self,
        *,
        older_than: timedelta | None = None,
        keep_last: int | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.older_than = older_than
        self.keep_last = keep_last
        self.only_look = dry_run  # `dry_run` is a method of every operator.

    def execute(self, context: Context) -> dict[str, Any]:
        """Expire."""
        from airflow_connect.runtime.driver.table_maintenance import expire_snapshots

        with self.failing_for_airflow():
            spec = self.arguments().run_spec()
        redactor_of(spec)
        age_ms = None if self.older_than is None else self.older_than // timedelta(milliseconds=1)
        with self.failing_for_airflow(spec):
            found = expire_snapshots(spec, age_ms=age_ms, least=self.keep_last, dry_run=self.only_look)
        for one in found:
            self.log.info(
                "Table %s: %s, %d %s, %d young, %d needed.",
                one.table,
                plural(one.snapshots, "snapshot"),
                len(one.expired),
                "would expire" if self.only_look else "expired",
                one.young,
                one.needed,
            )
        tables = {one.table: {**one.to_json(), "expired": len(one.expired)} for one in found}
        return {
            "expired": sum(len(one.expired) for one in found),
            "dry_run": self.only_look,
            "tables": {
                name: {key: value for key, value in of.items() if key != "table"} for name, of in tables.items()
            },
        }


__all__ = ["IcebergMaintenanceOperator"]
