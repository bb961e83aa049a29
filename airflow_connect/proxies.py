"""HTTP proxies: where they are configured, and the login that they want."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import urllib3


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and a login for it.

    Attributes:
        url: its address; it may contain user and password, percent-encoded.
        user, password: the login, before that of the address; "": none.
    """

    url: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        """Without the login."""
        return f"Proxy({urlsplit(self.url).hostname})"

    def manager(self, **options: Any) -> urllib3.ProxyManager:
        """Connections through it; urllib3 handles tunnels and TLS to the proxy. `options`: of `urllib3.ProxyManager`.

        Raises:
            urllib3.exceptions.HTTPError: the address is no http or https address with a host.
        """
        import urllib3  # Takes 0.1 s, and most runs have no proxy.

        parts = urlsplit(self.url)
        user = self.user or unquote(parts.username or "")
        password = self.password or unquote(parts.password or "")
        login = b64encode(f"{user}:{password}".encode()).decode()  # Of urllib3's own helper a password is Latin-1.
        headers = {"proxy-authorization": f"Basic {login}"} if user else None
        return urllib3.ProxyManager(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", proxy_headers=headers, **options
        )


def of_environment(url: str) -> Proxy | None:
    """The proxy for a URL by HTTP_PROXY or HTTPS_PROXY; None: there is none, or NO_PROXY exempts its host."""
    parts = urlsplit(url)
    found = "" if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme, "")
    # In the environment `host:port` is common; it means the same as for curl.
    return Proxy(found if "://" in found else f"http://{found}") if found else None
