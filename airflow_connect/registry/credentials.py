"""Credentials for the registry as HTTP headers (`basic.auth.*`, `bearer.auth.*`)."""

from __future__ import annotations

import re
from base64 import b64encode

from airflow_connect.errors import ConfigError
from airflow_connect.registry.settings import RegistryConfig

_JAAS_OPTION = re.compile(r"""\b(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")


def authorization(config: RegistryConfig, in_url: str) -> dict[str, str]:
    """Headers that authenticate requests; none if nothing is configured.

    Args:
        config: what the converter takes from its configuration.
        in_url: `user:password` of the base URL, or "".

    Raises:
        ConfigError: two kinds of credentials are configured, or a source contains none.
    """
    user_info, token = _user_info(config, in_url), config.bearer_token
    if user_info and token:
        raise ConfigError(
            f"Both {RegistryConfig.bearer_token} and a user with a password are set; the registry accepts one of them.",
            suggestion=f"Remove {RegistryConfig.bearer_token} or the user.",
            config_path=RegistryConfig.bearer_token.name,
        )
    if token:
        headers = {
            "Authorization": f"Bearer {token}",
            "target-sr-cluster": config.logical_cluster,
            "Confluent-Identity-Pool-Id": config.identity_pool,
        }
        return {name: value for name, value in headers.items() if value}
    return {"Authorization": f"Basic {b64encode(user_info.encode()).decode('ascii')}"} if user_info else {}


def _user_info(config: RegistryConfig, in_url: str) -> str:
    source = config.login_source
    if source == "URL":
        return in_url
    if source == "SASL_INHERIT":
        found = dict(_JAAS_OPTION.findall(config.jaas))
        if len(found) == 2:
            return f"{_unquoted(found['username'])}:{_unquoted(found['password'])}"
        raise ConfigError(
            f"{RegistryConfig.login_source}=SASL_INHERIT needs a sasl.jaas.config with username and password.",
            suggestion="Set sasl.jaas.config with the converter's prefix, or use USER_INFO.",
            config_path=RegistryConfig.jaas.name,
        )
    given = config.old_login or config.login
    if ":" not in given:
        raise ConfigError(
            f"{RegistryConfig.login_source}=USER_INFO needs {RegistryConfig.login}=user:password.",
            suggestion=f"Set {RegistryConfig.login}.",
            config_path=RegistryConfig.login.name,
        )
    return given


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[:1] in ("'", '"') else value
