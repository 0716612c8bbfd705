"""The typed operations of the interface, without Airflow, an HTTP library or a clock."""
