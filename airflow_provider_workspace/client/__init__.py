"""The two clients: the standard library for workers, httpx for the event loop."""
