"""`/connector-plugins`: what is installed, its keys, and the validation of configurations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response

from airflow_connect.control.herder import plugins
from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.bodies import config_of
from airflow_connect.control.rest.described import READS, WITH_BODY, answers, takes
from airflow_connect.control.rest.models import ConfigInfos, ConfigKeyInfo, PluginInfo
from airflow_connect.control.rest.parameters import Body, HerderHere, PluginName, flag, flag_parameter

router = APIRouter(prefix="/connector-plugins", tags=["plugins"], route_class=AnsweringRoute)
_ONLY = flag_parameter("connectorsOnly", "Whether transformations, predicates and converters are left out.")


@router.get("", responses=answers(READS, {200: list[PluginInfo]}))
def list_plugins(connectors_only: Annotated[str, _ONLY] = "true") -> Response:
    """Plugins of this package, and Java plugins of the worker's `plugin.path`."""
    return Json(plugins.installed(connectors_only=flag(connectors_only)))


@router.get("/{plugin}/config", responses=answers(READS, {200: list[ConfigKeyInfo]}))
def list_keys(herder: HerderHere, plugin: PluginName) -> Response:
    """The configuration keys of a plugin (KIP-769): one that is installed, or that a connector uses."""
    return Json(herder.plugin_keys(plugin))


@router.put(
    "/{plugin}/config/validate",
    responses=answers(WITH_BODY, {200: ConfigInfos}),
    openapi_extra=takes("Configuration"),
)
def validate_config(herder: HerderHere, plugin: PluginName, body: Body) -> Response:
    """Check a configuration. The answer is 200 for a wrong one, too; `error_count` says how many errors it has."""
    return Json(herder.validated(plugin, config_of(body)))
