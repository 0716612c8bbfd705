"""Apache Airflow provider for the workspace administration service."""

__version__ = "0.1.0"
