"""What a task knows of its earlier tries, with Airflow's task state store and without one."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.state.task_state import TaskState
from tests.task_store import TaskStore


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Try:
    def __init__(self, number: int) -> None:
        self.try_number = number


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_first_try_knows_that_nothing_was_begun(clock: Clock) -> None:
    for context in ({}, {"ti": Try(1)}, {"ti": Try(2), "task_state_store": TaskStore()}):
        state = TaskState(context, clock=clock)
        assert state.age("project") is None
        assert not state.has_begun("project")


def test_a_retry_knows_when_the_killed_try_began(clock: Clock) -> None:
    store = TaskStore()
    TaskState({"task_state_store": store}, clock=clock).begin("project")
    clock.now += 7
    retry = TaskState({"ti": Try(2), "task_state_store": store}, clock=clock)
    assert retry.age("project") == 7
    assert retry.has_begun("project")
    assert retry.age("invites") is None
    retry.begin("project")
    assert retry.age("project") == 0
    retry.forget()
    assert retry.age("project") is None


def test_without_a_store_a_retry_counts_from_its_own_beginning_and_takes_that_along(clock: Clock) -> None:
    carried: dict[str, Any] = {}
    retry = TaskState({"ti": Try(2)}, carried, clock=clock)
    clock.now += 7
    assert retry.age("project") == 7
    assert not retry.has_begun("project")
    again = TaskState({"ti": Try(2)}, dict(carried), clock=clock)
    assert again.age("project") == 7
    again.begin("project")
    clock.now += 2
    assert again.age("project") == 2
    assert again.has_begun("project")


def test_without_a_store_a_deferral_takes_the_note_along(clock: Clock) -> None:
    carried: dict[str, Any] = {}
    TaskState({"ti": Try(1)}, carried, clock=clock).begin("project")
    clock.now += 3600
    assert TaskState({"ti": Try(1)}, dict(carried), clock=clock).age("project") == 3600


def test_a_clock_that_is_set_back_makes_no_negative_age(clock: Clock) -> None:
    store = TaskStore()
    TaskState({"task_state_store": store}, clock=clock).begin("project")
    clock.now -= 10
    assert TaskState({"task_state_store": store}, clock=clock).age("project") == 0


def test_a_dry_run_remembers_nothing(clock: Clock) -> None:
    store, carried = TaskStore(), dict[str, Any]()
    dry_run = TaskState({"ti": Try(2), "task_state_store": store}, carried, dry_run=True, clock=clock)
    assert dry_run.age("project") is None
    dry_run.begin("project")
    assert not store
    assert not carried
