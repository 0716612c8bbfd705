"""
A complete local workspace administration service, for tests and trials.

Start it with ``python -m airflow_provider_workspace.sandbox``, or in a test with
:class:`airflow_provider_workspace.sandbox.server.SandboxServer`. It implements the interface independently and imports
nothing from the rest of the package, so that client and sandbox cannot share a mistake.
"""
