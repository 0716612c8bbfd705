"""
A simulation of several windows over one export: the real lease code, Variables in memory and a service with delays.

Each process is a greenlet that stops before every step that others can see: a Variable or a request. The test chooses
which process continues, when a request takes effect, and when a process is killed. The same list of choices always
leads to the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import greenlet

from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, Window
from airflow_provider_workspace.windows.pausing import Pauser
from airflow_provider_workspace.windows.resuming import Closer
from airflow_provider_workspace.windows.sweep import SweptWindow, sweep_windows

EXPORT = "0190c0de-0000-4000-8000-0000000000e1"
CONSISTENCY_TIME = 120.0
# Seconds until Airflow starts a task.
TASK_START = 0.6
SWEEP_INTERVAL = 300.0
MAX_LENGTH = 86_400.0
OVER, ACTIVE = Run("over"), Run(tasks={"close": None})


@dataclass
class Request:
    """
    A request that the service has received and may not have applied yet.

    It takes effect within the consistency time after its lease noted it.
    """

    sender: Process
    pauses: bool
    takes_effect_by: float

    def state(self) -> Any:
        """Return everything that the future depends on."""
        return self.sender.name, self.pauses, self.takes_effect_by


class Process:
    """A Dag run with a window. Its tasks run one after the other; each is a process that can be killed."""

    def __init__(self, world: World, name: str, *, retries_close: bool = True) -> None:
        self.world = world
        self.name = name
        self.window = Window(name, "run", "close")
        self.task = "open"
        self.tries = 1
        self.retries_close = retries_close
        self.at_work = False
        self.over = False
        self.wakes_at: float | None = None
        self.request: Request | None = None
        self.answered = False
        self.history: list[Any] = []
        self.at: Any = None
        self._start()

    def state(self) -> Any:
        """Return everything that the future depends on."""
        place = (self.task, self.tries, str(self.at), self.wakes_at)
        stage = (self.over, self.at_work, self.request is not None, self.answered)
        history = hash(tuple(map(str, self.history)))
        return place, stage, history

    def _start(self) -> None:
        # Only pausing depends on the time; for other tasks it would multiply equal states.
        if any(process.task == "pause" for process in self.world.processes if process is not self):
            self.world.clock += TASK_START
        self.history = []
        self.request = None
        self.wakes_at = None
        self._greenlet = greenlet.greenlet(getattr(self, f"_{self.task}"))
        self.at = None
        self._resume()

    def _resume(self) -> None:
        previous = self.world.running
        self.world.running = self
        self.at = self._greenlet.switch()
        self.world.running = previous
        if self._greenlet.dead:
            self._ended(succeeded=True)

    def _ended(self, *, succeeded: bool) -> None:
        """Do what Airflow does after a task succeeded or failed."""
        following = {"open": "pause", "pause": "work", "work": "close"}
        self.at_work = False
        if self.task == "close":
            if not succeeded and self.retries_close and self.tries == 1:
                self.tries += 1
                self._start()
            else:
                self.over = True
        elif succeeded:
            self.task = following[self.task]
            self._start()
        elif self.task == "open":  # a teardown does not run after a failed setup
            self.over = True
        else:
            self.task = "close"
            self._start()

    @property
    def can_go_on(self) -> bool:
        """Whether it waits neither for a response nor for a time."""
        return not self.over and self.request is None and (self.wakes_at is None or self.wakes_at <= self.world.clock)

    def step(self) -> None:
        """Run it until the next step that others can see."""
        self.wakes_at = None
        self.answered = False
        self.world.moved = self
        self._resume()

    def kill(self) -> None:
        """Kill it as with SIGKILL; requests already sent stay sent."""
        self.answered = False
        self.history.append("killed")
        self._greenlet = greenlet.greenlet(lambda: None)
        self._ended(succeeded=False)

    # The tasks, as in the operators

    def _open(self) -> None:
        now = self.world.clock
        self.world.registry.add(
            Lease(
                dag_id=self.window.dag_id,
                run_id=self.window.run_id,
                close_task_id=self.window.close_task_id,
                service="https://workspace.example.com",
                workspace_conn_id="workspace_default",
                organization_id="organization",
                batch_export_id=EXPORT,
                resume_fields={"backfill": True},
                since=now,
                until=now + MAX_LENGTH,
                state_of="the service" if self.world.sees else None,
            )
        )

    def _pause(self) -> None:
        world = self.world
        pauser = Pauser(world.registry, lambda _: world, clock=world.time)
        while waiting := pauser.pause_all(world.registry.all(window=self.window)):
            world.sleep(max(waiting.values()) - world.clock)

    def _work(self) -> None:
        self.at_work = True
        self.world.visible("work")
        self.at_work = False

    def _close(self) -> None:
        world = self.world
        closer = Closer(world.registry, lambda _: world, f"{self.name}#{self.tries}", clock=world.time)
        while until := (done := closer.close_all(world.registry.all(window=self.window))).wait_until:
            world.sleep(until - world.clock)
        assert not done.failed, done.failed


@dataclass
class World:
    """Airflow Variables, the service, and a clock that advances only when no process can run."""

    clock: float = 1_000_000.0
    variables: dict[str, str] = field(default_factory=dict)
    paused: bool = False
    sees: bool = False
    gap: bool = False
    under_way: list[Request] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    kills: int = 0
    running: Process | None = None
    moved: Process | None = None
    max_kills: int = 1
    kills_anywhere: bool = True
    mortal: tuple[str, ...] = ("a", "b")
    consistency_time: float = CONSISTENCY_TIME

    def __post_init__(self) -> None:
        self.registry = LeaseRegistry(self)
        self.hook = self

    def visible(self, what: Any) -> None:
        """Stop before a step that others can see."""
        if self.running is not None:
            greenlet.getcurrent().parent.switch(what)

    def time(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        if self.running is None:
            self.clock += seconds
        else:
            self.running.wakes_at = self.clock + max(0.0, seconds)
            self.visible(("sleep", round(self.running.wakes_at, 3)))

    # The Variables

    def list_keys(self) -> list[str]:
        self.visible("list")
        return self._seen("list", sorted(self.variables))

    def read(self, key: str) -> str | None:
        # Only the window itself writes its lease, so the moment of reading it does not matter.
        if self.running is not None and not key.startswith(self.running.window.key):
            self.visible("read")
        return self._seen("read", self.variables.get(key))

    def write(self, key: str, value: str) -> None:
        self.visible("write")
        self.variables[key] = value

    add = write

    def delete(self, key: str) -> None:
        self.visible("delete")
        self.variables.pop(key, None)

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:  # noqa: ARG002 - its leases name no work
        process = next(process for process in self.processes if process.window == window)
        return self._seen("over", OVER if process.over else ACTIVE)

    def _seen(self, what: str, value: Any) -> Any:
        """Record what the running process has read: its state depends on nothing else."""
        if self.running is not None:
            self.running.history.append((what, value))
        return value

    # The service

    def send(self, lease: Lease, *, pauses: bool, write_note: Callable[[bool], object]) -> None:
        assert pauses or lease.resume_fields == {"backfill": True}
        noted = self.clock + self.consistency_time
        write_note(False)  # noqa: FBT003
        self._send(pauses=pauses, noted=noted)

    def read_state(self) -> str:
        self.visible("read_state")
        return str(self._seen("read_state", "paused" if self.paused else "running"))

    wait = sleep

    def _send(self, *, pauses: bool, noted: float) -> None:
        if self.running is None:
            self.paused = self.gap = pauses
            return
        self.visible("send")
        request = Request(self.running, pauses, noted - 0.01)
        self.running.request = request
        self.under_way.append(request)
        # Between the effect and the next visible step there is no choice.
        self.visible("answer")

    # The choices

    def choices(self) -> list[Callable[[], None]]:
        """Return the possible next steps."""
        found: list[Callable[[], None]] = []
        for process in self.processes:
            if process.can_go_on:
                found.append(process.step)
            if self._may_be_killed(process):
                found.append(lambda process=process: self._kill(process))
        found += [lambda request=request: self._take_effect(request) for request in self.under_way]
        wakes_at = self._next_wake()
        if wakes_at is not None:
            found.append(lambda: self._advance(wakes_at))
        return found

    def _may_be_killed(self, process: Process) -> bool:
        """Whether a kill makes a difference: one of a stopped process equals one now, as it may start later."""
        if process.over or self.kills >= self.max_kills:
            return False
        return process.name in self.mortal and process is self.moved and self._at_a_request(process)

    def _next_wake(self) -> float | None:
        """Return when the first process wakes; ``None`` if none waits, or something else must happen before."""
        if any(process.can_go_on for process in self.processes):
            return None
        wakes = [process.wakes_at for process in self.processes if process.wakes_at and not process.over]
        if not wakes or any(request.takes_effect_by < min(wakes) for request in self.under_way):
            return None
        return min(wakes)

    def _at_a_request(self, process: Process) -> bool:
        """Whether a process may be killed here: anywhere, or only before, during and after a request."""
        return self.kills_anywhere or process.at in ("send", "answer") or process.answered

    def _kill(self, process: Process) -> None:
        self.kills += 1
        process.kill()

    def _take_effect(self, request: Request) -> None:
        self.under_way.remove(request)
        # A paused export misses intervals; a resume with a backfill exports them.
        self.paused = self.gap = request.pauses
        if request.sender.request is request:
            request.sender.request = None
            request.sender.step()
            request.sender.answered = True

    def _advance(self, clock: float) -> None:
        self.clock = clock

    def state(self) -> Any:
        """Return everything that the future depends on."""
        return (
            self.paused,
            self.kills,
            self.moved.name if self.moved and self.kills < self.max_kills else None,
            round(self.clock, 3),
            tuple(sorted(self.variables.items())),
            tuple(request.state() for request in self.under_way),
            tuple(process.state() for process in self.processes),
        )

    def violation(self) -> str | None:
        """Return the violated invariant, if any."""
        if not self.paused:
            for process in self.processes:
                if process.at_work:
                    return f"the export runs during the work of {process.name}"
        return None

    def sweep(self, times: int = 3) -> list[SweptWindow]:
        """Run the sweep several times."""
        swept: list[SweptWindow] = []
        for _ in range(times):
            for request in list(self.under_way):
                self._take_effect(request)
            closer = Closer(self.registry, lambda _: self, "sweep", clock=self.time)
            swept += sweep_windows(closer).windows
            self.clock += SWEEP_INTERVAL
        return swept


def build(names: tuple[str, ...] = ("a", "b"), **options: Any) -> World:
    """Return a world with windows over one export, all about to open."""
    world = World(**{"mortal": names, **options})
    for name in names:
        world.processes.append(Process(world, name))
    return world
