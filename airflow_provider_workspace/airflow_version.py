"""The one place that knows what only some Airflow releases have."""

from __future__ import annotations

try:
    from airflow.sdk.log import amask_secret
except ImportError:  # before 3.3
    import asyncio

    from airflow.sdk.log import mask_secret

    async def amask_secret(secret: str) -> None:  # type: ignore[misc]
        """Mask a secret without blocking the event loop."""
        await asyncio.to_thread(mask_secret, secret)


__all__ = ["amask_secret"]
