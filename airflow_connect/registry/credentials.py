"""Credentials for the registry as HTTP headers (`basic.auth.*`, `bearer.auth.*`)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.registry import settings

_JAAS_OPTION = re.compile(r"""\b(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")


def authorization(parsed: Mapping[str, Any], in_url: str) -> dict[str, str]:
    """Headers that authenticate requests; none if nothing is configured.

    Args:
        parsed: values of `settings.shared_keys()`.
        in_url: `user:password` of the base URL, or "".

    Raises:
        ConfigError: two kinds of credentials are configured, or a source contains none.
    """
    user_info, token = _user_info(parsed, in_url), parsed[settings.BEARER_TOKEN].value
    if user_info and token:
        raise ConfigError(
            f"Both {settings.BEARER_TOKEN} and a user with a password are set; the registry accepts one of them.",
            suggestion=f"Remove {settings.BEARER_TOKEN} or the user.",
            config_path=settings.BEARER_TOKEN,
        )
    if token:
        headers = {
            "Authorization": f"Bearer {token}",
            "target-sr-cluster": parsed[settings.LOGICAL_CLUSTER],
            "Confluent-Identity-Pool-Id": parsed[settings.IDENTITY_POOL],
        }
        return {name: value for name, value in headers.items() if value}
    return {"Authorization": f"Basic {b64encode(user_info.encode()).decode('ascii')}"} if user_info else {}


def _user_info(parsed: Mapping[str, Any], in_url: str) -> str:
    source = parsed[settings.BASIC_SOURCE]
    if source == "URL":
        return in_url
    if source == "SASL_INHERIT":
        found = dict(_JAAS_OPTION.findall(parsed["sasl.jaas.config"].value))
        if len(found) == 2:
            return f"{_unquoted(found['username'])}:{_unquoted(found['password'])}"
        raise ConfigError(
            f"{settings.BASIC_SOURCE}=SASL_INHERIT needs a sasl.jaas.config with username and password.",
            suggestion="Set sasl.jaas.config with the converter's prefix, or use USER_INFO.",
            config_path="sasl.jaas.config",
        )
    given: str = parsed[settings.OLD_USER_INFO].value or parsed[settings.USER_INFO].value
    if ":" not in given:
        raise ConfigError(
            f"{settings.BASIC_SOURCE}=USER_INFO needs {settings.USER_INFO}=user:password.",
            suggestion=f"Set {settings.USER_INFO}.",
            config_path=settings.USER_INFO,
        )
    return given


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[:1] in ("'", '"') else value
