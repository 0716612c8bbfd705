"""Certificate fixtures, shared with the tests of the clients."""

from tests.unit.hooks.conftest import certificate, server_tls

__all__ = ["certificate", "server_tls"]
