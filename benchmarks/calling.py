"""Target 2: what one call costs a worker; and, counted in the same run, what a page of a list costs (target 4)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import contestants
import measure
from counted import CALLS, PAGES
from measure import OURS, Result
from service import running


def main() -> None:
    """Measure."""
    rounds = 9 if measure.quick(__doc__, "fewer rounds") else 21
    with running() as service:
        counts = measure.instructions("counted.py", service.url, "gets", "pages")
    samples = {name: [value / CALLS / 1e6 for value in counts[f"gets:{name}"]] for name in contestants.GETS}
    later = Result(
        2,
        "GET of 1.5 kB of JSON",
        "M instructions",
        samples,
        {"requests.Session": 0.8, "HttpHook.run": 0.65},
    )
    pages = {name: [value / PAGES / 1e6 for value in counts[f"pages:{name}"]] for name in contestants.LISTS}
    page = Result(4, "A page of 100 members", "M instructions", pages, {"requests.Session, dicts": 1.1})
    with measure.airflow_home(), tempfile.TemporaryDirectory() as folder:
        measure.report("calling", [later, first_call(Path(folder), rounds), page])


def first_call(folder: Path, rounds: int) -> Result:
    """Import, build the client with the usual authorities, connect with TLS, ask: all a fresh task process does."""
    import certifi
    from airflow.sdk.execution_time import supervisor

    assert supervisor  # Linux forks the process of a task from it
    key, certificate, authorities = folder / "key.pem", folder / "certificate.pem", folder / "authorities.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    authorities.write_text(Path(certifi.where()).read_text() + certificate.read_text())
    both = folder / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    os.environ["REQUESTS_CA_BUNDLE"] = str(authorities)
    with running(certificate=str(both)) as service:
        measure.connect(service.url)
        contestants.import_base_classes()
        ways: dict[str, contestants.Contestant] = {
            OURS: contestants.get_with_hook,
            "HttpHook.run": contestants.get_with_http_hook,
            "requests.Session": contestants.get_with_requests,
        }

        def first(ready: contestants.Contestant) -> Callable[[], float]:
            return lambda: 1000 * measure.cpu_seconds(lambda: ready(service.url)())

        samples = measure.in_turn({name: first(ready) for name, ready in ways.items()}, rounds)
    return Result(2, "First call of a fresh task process, with TLS", "ms", samples, {"HttpHook.run": 0.65})


if __name__ == "__main__":
    main()
