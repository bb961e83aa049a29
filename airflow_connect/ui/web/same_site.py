"""Refuses changes that a page of another site has a browser send (CSRF).

Airflow's login cookie has SameSite=Lax, which does not protect against pages of other ports and subdomains. Browsers
name the page that sends a request in `Origin` (RFC 6454), or say how it relates to this site in `Sec-Fetch-Site` (W3C,
Fetch Metadata). A change with the cookie has to have one of them; programs send a bearer token instead of the cookie.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf
from starlette.requests import Request

from airflow_connect.control.herder.refusals import FORBIDDEN, RefusedError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_other_sites(request: Request) -> None:
    """Refuse a change unless a program sends it, or a page of this Airflow.

    Requests with a safe method (RFC 9110, 9.2.1) pass: they change nothing, and browsers keep their answers from pages
    of other sites.

    Raises:
        RefusedError: with status 403.
    """
    if request.method in SAFE_METHODS:
        return
    origin, relation = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is not None:
        is_own = _is_own(origin, request)
    elif relation is not None:
        is_own = relation in ("same-origin", "none")
    else:
        is_own = request.headers.get("authorization", "").lower().startswith("bearer ")
    if not is_own:
        raise RefusedError(
            "Changes that a page of another site sends are refused. A program has to send an access token of Airflow:"
            " Authorization: Bearer <token>.",
            FORBIDDEN,
        )


def _is_own(origin: str, request: Request) -> bool:
    """Whether it is this server, as the request or `[api] base_url` names it, or one that Airflow's CORS keys allow."""
    named = urlsplit(origin)
    if not named.netloc:
        return False
    if named.netloc == request.headers.get("host"):
        return True
    base = urlsplit(conf.get("api", "base_url", fallback="") or "")
    allowed = conf.getlist("api", "access_control_allow_origins", fallback=[]) or []
    return (named.scheme, named.netloc) == (base.scheme, base.netloc) or origin in allowed
