"""The two clients: requests for workers, httpx for the event loop."""
