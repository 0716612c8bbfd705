"""What Airflow remembers for the provider: task state, dashboards, progress of bulk invites."""
