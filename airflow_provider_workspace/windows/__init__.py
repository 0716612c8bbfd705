"""Maintenance windows: leases on batch exports, pausing, resuming, and what a window is."""
