"""The status page in the Airflow UI."""
