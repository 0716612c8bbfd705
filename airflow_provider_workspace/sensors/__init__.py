"""Sensors of the workspace provider."""
