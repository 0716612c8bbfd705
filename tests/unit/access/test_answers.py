"""Tests for who answers a question, and who asks it."""

from __future__ import annotations

import pytest

from airflow_provider_workspace.access.rules.answers import Answerer, AnswerRules


@pytest.mark.parametrize("user", [None, "ruth", {}, {"name": "ruth"}, {"id": ""}, {"id": None, "name": "ruth"}])
def test_an_answer_that_names_no_user_is_of_nobody(user: object) -> None:
    assert Answerer.read(user) is None


@pytest.mark.parametrize(
    ("started_by", "requested_by", "requester"),
    [
        ("", "", ""),
        ("ruth", "", "ruth"),
        ("", "ada@example.com", "ada@example.com"),
        ("ruth", "Ruth", "Ruth"),
        ("bot", "ada@example.com", "ada@example.com (run started by bot)"),
    ],
)
def test_who_asks_is_said_once(started_by: str, requested_by: str, requester: str) -> None:
    assert AnswerRules(started_by=started_by, requested_by=requested_by).requester == requester
