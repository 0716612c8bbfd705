"""Temporary access, and its ends."""
