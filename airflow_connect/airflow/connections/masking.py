"""Registers the secrets of a run with Airflow's masker.

Airflow masks by key name, and its list lacks Kafka's keys: `sasl.jaas.config`, `ssl.keystore.key`,
`basic.auth.user.info`, a password inside a URL. So it gets the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_connect.runtime.reporting.redaction import MIN_SECRET_LENGTH


def mask_in_airflow(secrets: Iterable[str]) -> None:
    """Have Airflow hide these values in logs, rendered fields and XCom views of this task."""
    from airflow.sdk.log import mask_secret

    for secret in secrets:
        if len(secret) >= MIN_SECRET_LENGTH:  # For a shorter one, Airflow would only log that it is too short.
            mask_secret(secret)
