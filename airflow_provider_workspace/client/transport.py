"""What both clients take from their surroundings, once: the proxy and the TLS context."""

from __future__ import annotations

import ssl
import urllib.request
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_workspace.client.settings import is_loopback
from airflow_provider_workspace.errors import WorkspaceConfigError

if TYPE_CHECKING:
    from airflow_provider_workspace.client.settings import Settings


def proxy_for(settings: Settings) -> str | None:
    """
    Return the proxy of the settings, else that of the environment, else ``None``.

    A proxy of the environment is not asked for this machine: it would look for the service on its own.

    :raises WorkspaceConfigError: if the environment names a proxy of another kind than HTTP
    """
    if settings.proxy is not None:
        return settings.proxy
    parts = urlsplit(settings.base_url)
    if is_loopback(parts.hostname or "") or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    scheme, found, _ = proxy.rpartition("://")
    if found and scheme.lower() not in ("http", "https"):
        msg = (
            f"The environment names a proxy of the kind {scheme}://, which is not supported. Set an http:// one as "
            f"'proxy' in the extra of {settings.source}, or name {parts.hostname} in NO_PROXY."
        )
        raise WorkspaceConfigError(msg)
    return proxy if found else f"http://{proxy}"


@cache
def tls_context(verify: bool | str) -> ssl.SSLContext:  # noqa: FBT001 - the setting as it is, hashable for the cache
    """
    Return the TLS context, built once per process: reading the authorities takes 45 ms.

    :param verify: true for the usual authorities (those of ``REQUESTS_CA_BUNDLE``, ``CURL_CA_BUNDLE`` or
        ``SSL_CERT_FILE`` if set), a file or folder with others, or false to check nothing
    :raises WorkspaceConfigError: if the authorities cannot be read
    """
    import os

    import certifi

    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    bundle = verify if isinstance(verify, str) else next(filter(None, map(os.environ.get, names)), certifi.where())
    try:
        if os.path.isdir(bundle):  # noqa: PTH112 - one call, no Path needed
            return ssl.create_default_context(capath=bundle)
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        msg = (
            f"The certificate authorities in '{bundle}' cannot be read ({error}): correct 'verify' in the extra of the "
            f"connection, or {', '.join(names)} in the environment."
        )
        raise WorkspaceConfigError(msg) from error
