"""What Airflow remembers for the provider: task state, dashboards, leases of maintenance windows."""
