"""Member sync and leavers."""
