"""Records what the hook of apache-airflow-providers-amazon is called with, into amazon_hook.json.

Run where the provider is installed, which needs not be this project's environment: it brings 21 packages.

    pip install apache-airflow-providers-amazon && python record_amazon_hook.py > amazon_hook.json
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def parameters(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Names, kinds, and whether they may be left out; without `self`."""
    return [
        {"name": p.name, "kind": p.kind.name, "optional": p.default is not inspect.Parameter.empty}
        for p in list(inspect.signature(function).parameters.values())[1:]
    ]


def main() -> None:
    """Print the recording."""
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper
    from boto3 import Session
    from botocore.credentials import Credentials

    recorded = {
        "versions": {name: version(name) for name in ("apache-airflow-providers-amazon", "boto3", "botocore")},
        "calls": {
            "AwsBaseHook": parameters(AwsBaseHook.__init__),
            "AwsBaseHook.get_session": parameters(AwsBaseHook.get_session),
            "AwsConnectionWrapper.get_service_endpoint_url": parameters(AwsConnectionWrapper.get_service_endpoint_url),
            "Session.get_credentials": parameters(Session.get_credentials),
            "Credentials.get_frozen_credentials": parameters(Credentials.get_frozen_credentials),
        },
        "attributes": {
            name: type(inspect.getattr_static(AwsBaseHook, name)).__name__ for name in ("region_name", "conn_config")
        },
        "conn_config": inspect.getattr_static(AwsBaseHook, "conn_config").func.__annotations__["return"],
    }
    print(json.dumps(recorded, indent=1))


if __name__ == "__main__":
    main()
