"""Operators of the workspace provider, one module per resource."""
