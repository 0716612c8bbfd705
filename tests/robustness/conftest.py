"""The certificate of the tests of both clients."""

from tests.unit.client.conftest import certificate, server_tls

__all__ = ["certificate", "server_tls"]
