"""The client: requests for workers, httpx for the event loop."""
