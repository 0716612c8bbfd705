"""What a task remembers of earlier tries, with and without Airflow's task state store."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.state.task_state import TaskState
from tests.task_instance import TaskStore


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


def test_a_first_try_has_begun_nothing(clock: Clock) -> None:
    for context in ({}, {"ti": Try(1)}, {"ti": Try(2), "task_state_store": TaskStore()}):
        state = TaskState(context, clock=clock)
        assert state.age("project") is None
        assert not state.has_begun("project")


def test_a_retry_knows_the_start_of_a_killed_try(clock: Clock) -> None:
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


def test_a_retry_without_a_store_counts_from_its_own_start(clock: Clock) -> None:
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


def test_a_deferral_without_a_store_keeps_the_note(clock: Clock) -> None:
    carried: dict[str, Any] = {}
    TaskState({"ti": Try(1)}, carried, clock=clock).begin("project")
    clock.now += 3600
    assert TaskState({"ti": Try(1)}, dict(carried), clock=clock).age("project") == 3600


def test_a_clock_set_back_gives_no_negative_age(clock: Clock) -> None:
    store = TaskStore()
    TaskState({"task_state_store": store}, clock=clock).begin("project")
    clock.now -= 10
    assert TaskState({"task_state_store": store}, clock=clock).age("project") == 0
    clock.now += 3
    assert TaskState({"task_state_store": store}, clock=clock).age("project") == 3, "else a wait would not end"


def test_a_retry_without_a_store_counts_on_after_the_clock_was_set_back(clock: Clock) -> None:
    retry = TaskState({"ti": Try(2)}, {}, clock=clock)
    clock.now -= 10
    assert retry.age("project") == 0
    clock.now += 3
    assert retry.age("project") == 3
    assert not retry.has_begun("project")


def test_a_dry_run_remembers_nothing(clock: Clock) -> None:
    store, carried = TaskStore(), dict[str, Any]()
    dry_run = TaskState({"ti": Try(2), "task_state_store": store}, carried, dry_run=True, clock=clock)
    assert dry_run.age("project") is None
    dry_run.begin("project")
    assert not store
    assert not carried
