"""The command ``airflow workspace``."""
