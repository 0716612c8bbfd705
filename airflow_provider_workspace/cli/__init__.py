"""The command ``airflow workspace``, which is also ``python -m airflow_provider_workspace``."""
