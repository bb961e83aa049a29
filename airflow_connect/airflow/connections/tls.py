"""TLS settings of Airflow connections whose servers are asked by HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any


def client_tls(extra: Mapping[str, Any]) -> Any:
    """What httpx verifies servers with, and the client's own certificate.

    Args:
        extra: of an Airflow connection: `verify` (false, or a file with certificates of authorities), `cert`, `key`.

    Raises:
        OSError: a file cannot be used.
    """
    verify = extra.get("verify", True)
    if str(verify).lower() in ("true", "false"):
        verify = str(verify).lower() == "true"
    if verify is True and not extra.get("cert"):
        return True
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if verify is False:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if extra.get("cert"):
        context.load_cert_chain(str(extra["cert"]), str(extra["key"]) if extra.get("key") else None)
    return context
