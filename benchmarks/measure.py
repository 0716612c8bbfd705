"""
How the benchmarks measure: in fresh processes, all contestants in turn, round after round.

Processor time is taken in forked processes, as Airflow's own are. Instructions are counted by Valgrind, which gives the
same figure run after run on a machine that is busy, too.
"""

from __future__ import annotations

import argparse
import compileall
import ctypes
import gc
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
COUNTER = BUILD / "counter.so"
OURS = "this provider"

Sample = dict[str, list[float]]


@dataclass
class Result:
    """
    One measured thing.

    :param target: number of the target it belongs to
    :param what: what was measured
    :param unit: of the samples
    :param samples: contestant -> one value per round; the rounds of all belong together
    :param at_most: contestant -> the most that ours may be, as a multiple of theirs
    :param bound: the most that ours may be in its unit; ``None`` where there is no such target
    """

    target: int
    what: str
    unit: str
    samples: Sample
    at_most: Mapping[str, float] = field(default_factory=dict)
    bound: float | None = None

    def ratios(self, peer: str) -> list[float]:
        """Return ours by theirs, of each round."""
        return [mine / theirs for mine, theirs in zip(self.samples[OURS], self.samples[peer], strict=True)]

    def missed(self) -> list[str]:
        """Say which targets are missed."""
        found = [
            f"{self.what}: {statistics.median(self.ratios(peer)):.2f} x {peer}, at most {limit:g} x is the target"
            for peer, limit in self.at_most.items()
            if statistics.median(self.ratios(peer)) > limit
        ]
        mine = statistics.median(self.samples[OURS])
        if self.bound is not None and mine > self.bound:
            found.append(f"{self.what}: {mine:.3g} {self.unit}, at most {self.bound:g} is the target")
        return found


def quick(description: str | None, less: str) -> bool:
    """Read the command line of a script: whether ``--quick`` asks for less."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help=less)
    return bool(parser.parse_args().quick)


def report(name: str, results: Sequence[Result]) -> None:
    """Print a table, and leave the results to the chart."""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}.json").write_text(json.dumps([asdict(result) for result in results]))
    print(table(results), flush=True)


def table(results: Sequence[Result]) -> str:
    """Return the figures as text: medians, and ratios with the middle half of their spread."""
    lines: list[str] = []
    for result in results:
        bound = ""
        if result.bound is not None:
            bound = f"   at most {result.bound:g}: {'MISSED' if result.missed() else 'met'}"
        lines.append(f"\n{result.target}  {result.what} ({result.unit}){bound}")
        for contestant, values in result.samples.items():
            line = f"     {contestant:<44}{short(statistics.median(values)):>10}"
            if contestant != OURS and any(values):
                ratios = result.ratios(contestant)
                low, high = middle_half(ratios)
                line += f"   ours is {statistics.median(ratios):5.2f} x  ({low:.2f} to {high:.2f})"
                if contestant in result.at_most:
                    limit = result.at_most[contestant]
                    line += f"   at most {limit:g}: {'MISSED' if statistics.median(ratios) > limit else 'met'}"
            lines.append(line)
    return "\n".join(lines)


def short(value: float) -> str:
    """Write a number with three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def middle_half(values: list[float]) -> tuple[float, float]:
    """Return the first and the third quartile."""
    if len(values) < 3:
        return min(values), max(values)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


# --- Processes ----------------------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> Any:
    """Run something in a forked process and return what it returns, which must be JSON."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with os.fdopen(write, "w") as out:
                json.dump(work(), out)
            status = 0
        except BaseException:  # noqa: BLE001 - a child never goes on in its parent's place
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("The measured process failed; see above.")
    return json.loads(text)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of something."""
    began = time.process_time()
    work()
    return time.process_time() - began


def in_turn(contestants: Mapping[str, Callable[[], float]], rounds: int) -> Sample:
    """Measure all contestants in turn, each time in a fresh process forked from this one."""
    gc.collect()
    gc.freeze()
    samples: Sample = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, measure in contestants.items():
            samples[name].append(in_child(measure))
    return samples


def peak_memory() -> float:
    """Return the most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def airflow_home() -> tempfile.TemporaryDirectory[str]:
    """Give Airflow an empty home, before it is imported, and compile this package: as it is once installed."""
    compileall.compile_dir(HERE.parent / "airflow_provider_workspace", quiet=1)
    compileall.compile_dir(HERE, quiet=1)
    home = tempfile.TemporaryDirectory(prefix="bench-airflow-")
    for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
        del os.environ[name]
    os.environ["AIRFLOW_HOME"] = home.name
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "ERROR"
    return home


def connect(url: str, **extra: Any) -> None:
    """Point the connections of this provider and of the peers to a service."""
    connection = {"host": url, "password": "key", "extra": {"organization_id": "org", "project_id": 1, **extra}}
    os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"] = json.dumps({"conn_type": "workspace", **connection})
    os.environ["AIRFLOW_CONN_HTTP_DEFAULT"] = json.dumps({"conn_type": "http", "host": url})


# --- Instructions -------------------------------------------------------------------------------------------


def instructions(script: str, *arguments: str) -> Sample:
    """
    Run a script under Valgrind and return what it counted: label -> instructions, one figure per repetition.

    :param script: a script of this folder that calls :func:`count`
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={folder}/out.%p", sys.executable, str(HERE / script), *arguments]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(command, check=True, env=environment)
        counts: Sample = {}
        dumps = list(Path(folder).glob("out.*.*"))
        for dump in sorted(dumps, key=lambda path: [int(part) for part in path.name.split(".")[1:]]):
            text = dump.read_text()
            label = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            if label and total:
                counts.setdefault(label[1], []).append(float(total[1]))
        return counts


@cache
def counter() -> ctypes.CDLL:
    """Return the switch of Valgrind's count."""
    return ctypes.CDLL(str(COUNTER))


@contextmanager
def counting() -> Iterator[None]:
    """Let Valgrind count, in a script that runs under it: it is slow to switch on and off."""
    gc.collect()
    gc.freeze()
    counter().start()
    yield
    counter().stop()


def count(label: str, work: Callable[[], object]) -> None:
    """Count the instructions of something, where Valgrind is :func:`counting`."""
    counter().zero()
    work()
    counter().dump(label.encode())
