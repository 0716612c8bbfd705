"""Triggers of the workspace provider."""
