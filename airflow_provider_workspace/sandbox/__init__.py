"""
A complete workspace administration service on this machine, to try the provider against.

Start it with ``python -m airflow_provider_workspace.sandbox``, or from a test with
:class:`airflow_provider_workspace.sandbox.server.SandboxServer`. It reads the service's interface on its own and
imports nothing from the rest of the package, so that client and sandbox cannot agree on the same mistake.
"""
