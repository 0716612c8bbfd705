"""What is decided about access, from records alone: no I/O, no Airflow, no clock."""
