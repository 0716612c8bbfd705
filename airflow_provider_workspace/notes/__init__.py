"""Notes: what Airflow remembers for the provider, written before an effect, so that whoever comes later can end it."""
