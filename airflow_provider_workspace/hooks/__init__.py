"""Hooks of the workspace provider."""
