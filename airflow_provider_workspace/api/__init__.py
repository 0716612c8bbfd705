"""The interface of the service as typed operations: no Airflow, no HTTP library, no clock."""
