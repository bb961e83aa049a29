"""`/` and `/health`."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from airflow_connect import __version__
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.rest.answers import AnsweringRoute, Json
from airflow_connect.control.rest.described import READS, answers
from airflow_connect.control.rest.models import ServerInfo, WorkerStatus
from airflow_connect.control.rest.parameters import HerderHere, Served, ServedHere
from airflow_connect.control.rest.paths import WITHOUT_USER
from airflow_connect.errors import ConnectError

HEALTH_WITHIN_S = 10.0
"""Source: DEFAULT_HEALTH_CHECK_TIMEOUT_MS (KIP-1017)."""
API_VERSION = "4.3.1"
"""Version of Kafka Connect whose requests are answered. Tools such as kcctl send some of them from a version on."""
HEALTHY = 200
_READY = "Worker has completed startup and is ready to handle requests."
router = APIRouter(tags=["server"], route_class=AnsweringRoute)


@router.get("/", responses=answers(READS, {200: ServerInfo}))
def server_info(herder: HerderHere) -> Response:
    """The version of Kafka Connect's API that is answered, this server's version, and the id of its Kafka cluster."""
    return Json({"version": API_VERSION, "commit": f"airflow-connect-{__version__}", **herder.server_info()})


@router.get("/health", responses=answers((401, 403, 405, 406), {200: WorkerStatus, 500: WorkerStatus}))
async def health(request: Request, herder: HerderHere, served: ServedHere) -> Response:
    """Whether requests can be handled: whether the state topics can be read, within 10 s (KIP-1017).

    The answer also names the connectors that this worker runs now, with the seconds since their run began. Without a
    user, it only says whether the worker is healthy.
    """
    answer = await _health(herder, served)
    if not request.scope.get(WITHOUT_USER):
        return answer
    is_healthy = answer.status_code == HEALTHY
    return Json({"status": "healthy", "message": _READY}) if is_healthy else _unhealthy("See the log of the worker.")


async def _health(herder: Herder, served: Served) -> Response:
    try:
        reading = asyncio.ensure_future(run_in_threadpool(herder.names))
        done, _ = await asyncio.wait({reading}, timeout=HEALTH_WITHIN_S)
        if not done:
            reading.add_done_callback(_retrieve)
            return _unhealthy(
                f"Worker was unable to handle this request within {HEALTH_WITHIN_S:.0f} seconds: Kafka does not answer."
            )
        reading.result()
    except ConnectError as error:
        return _unhealthy(str(error))
    running = [{"connector": name, "seconds": round(s, 1)} for name, s in sorted(served.worker.running_s().items())]
    return Json({"status": "healthy", "message": _READY, **({"runs": running} if running else {})})


def _retrieve(reading: asyncio.Future[list[str]]) -> None:
    """Nobody waits for it any more; asyncio reports an exception that nobody has looked at."""
    if not reading.cancelled():
        reading.exception()


def _unhealthy(message: str) -> Response:
    return Json({"status": "unhealthy", "message": message}, 500)
