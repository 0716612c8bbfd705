"""An access review: who has access, what a reviewer may decide and did, what that changes, and the page about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace import errors
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, domain_key
from airflow_provider_workspace.api.levels import LEVELS, describe_level
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.timestamps import parse_timestamp, to_second
from airflow_provider_workspace.procedures.entitlements import NOTHING_NOTED, NotedAccess
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.markdown import code, fit, inert, table
from airflow_provider_workspace.procedures.members import HIDDEN, ORDER, Guards, check_owner_stays
from airflow_provider_workspace.procedures.people import read_people
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.entitlements import TemporaryAccess

Json = Mapping[str, Any]
Rows = Iterable[Json]
Decisions = Mapping[str, str | int]
KEEP, REMOVE, LOWER_TO = "keep", "remove", "lower to "
MEMBER, INVITE, COLLABORATOR = "member", "invite", "collaborator"
AGAIN = "Start a new run to decide again: "
# What the service shows of people, if it does.
SHOWN = ("level", "joined_at", "last_login", "is_2fa_enabled")
# Columns for people, who fill in the last one.
COLUMNS = ("who", "kind", *SHOWN, "outside", "change", "look", "decision")
HEADERS = ("who", "look", "kind", "level", "joined", "last log-in", "second factor")
# Of more people, only those are asked about who do not stay.
MAX_FIELDS = 25
UNSEEN_DAYS = 90
MAX_PROBLEMS, MAX_SHOWN = 10, 60
REMOVALS: dict[str, Any] = {
    MEMBER: ops.members.DeleteMember,
    INVITE: ops.invites.DeleteInvite,
    COLLABORATOR: ops.dashboards.RemoveDashboardCollaborator,
}
# With these outcomes, nothing is left to do.
# A decision that waits for the end of temporary access is noted, and done then.
LATER = "later"
FINE, NOT_SENT = ("done", "kept", LATER), "not sent"
NEVER_KNOWN = (
    "Who granted access and why; other API keys; access to single projects, and to dashboards that are not listed; "
    "whose API key read all this. The service does not show what is *not shown*. Expired invites give no access."
)


def read_population(
    client: WorkspaceClient,
    organization_id: str,
    guards: Guards,
    now: datetime,
    dashboards: Rows,
    previous: Any,
    noted: NotedAccess = NOTHING_NOTED,
) -> dict[str, Any]:
    """
    Read everybody who has access: members, open invites, and the collaborators of some dashboards.

    :param guards: who can only be kept
    :param dashboards: ``project_id`` and ``dashboard_id`` of each
    :param previous: the population of the last review, see :func:`reviewed`, with its ``folder`` and ``sha256``;
        ``None`` if there was none
    :param noted: temporary access, which is told apart
    :raises WorkspaceIncompleteListError: if a list is known to be short
    """
    domains = read_rows(client, ops.domains.ListDomains(organization_id=organization_id))
    verified = sorted({domain_key(domain.domain or "") for domain in domains if domain.is_verified})
    found = _read_access(client, organization_id, dashboards)
    had: dict[str, Json] | None = None
    if previous:
        had = {row["who"]: row for row in previous["people"]}
    logins = [access.record.last_login for access in found if access.kind == MEMBER]
    reader = _Reader(guards, now if any(logins) else None, verified, had, noted, _homes(found))
    people: dict[str, dict[str, Any]] = {}
    for access in found:
        who = access.who
        if who in people:
            who = f"{who} ({access.kind} {len(people)})"
        people[who] = reader.row(who, access)
    first = [row for row in people.values() if row["look"]]
    others = [row for row in people.values() if not row["look"]]
    population: dict[str, Any] = {
        "read_at": to_second(now),
        "service": client.settings.base_url,
        "organization_id": organization_id,
        "verified_domains": verified,
        "previous": None,
        "left": None,
        "people": first + others,
    }
    if previous and had is not None:
        population["previous"] = {name: previous[name] for name in ("folder", "read_at", "sha256")}
        population["left"] = sorted(had.keys() - people.keys())
    return population


@dataclass(frozen=True)
class _Access:
    """
    Access of somebody.

    :param kind: ``member``, ``invite`` or ``collaborator``
    :param user: who it is; of an invite its id and its address
    :param record: what the service shows of it
    :param dashboard: ids of the dashboard; empty if it is access to the organization
    """

    kind: str
    user: User
    record: Any
    dashboard: Json

    @property
    def who(self) -> str:
        """What people call it."""
        who = address_key(self.user.email or "") or f"{self.kind} {self.user.uuid}"
        if not self.dashboard:
            return who
        return f"{who} on dashboard {self.dashboard['dashboard_id']}"


def _read_access(client: WorkspaceClient, organization_id: str, dashboards: Rows) -> list[_Access]:
    present = read_people(client, organization_id)
    found = [_Access(MEMBER, member.user or User(), member, {}) for member in present.members]
    for invite in present.invites:
        invited = User(uuid=invite.id, email=invite.target_email)
        found.append(_Access(INVITE, invited, invite, {}))
    users = {member.user.uuid: member.user for member in present.members if member.user}
    for dashboard in dashboards:
        collaborators = read_rows(client, ops.dashboards.ListDashboardCollaborators(**dashboard))
        for one in collaborators:
            user = users.get(one.user_uuid or one.label) or one.user or User(uuid=one.user_uuid)
            found.append(_Access(COLLABORATOR, user, one, dashboard))
    return found


@dataclass(frozen=True)
class _Reader:
    """
    Makes the rows of a population.

    :param guards: who can only be kept
    :param now: the time; ``None`` if the service does not show when people logged in
    :param verified: the verified domains
    :param had: the rows of the last review, by their names; ``None`` if there was none
    :param noted: temporary access
    :param homes: the key of the address of each user who is a member
    """

    guards: Guards
    now: datetime | None
    verified: list[str]
    had: Mapping[str, Json] | None
    noted: NotedAccess
    homes: Mapping[str, str]

    def row(self, who: str, access: _Access) -> dict[str, Any]:
        """Return the row of somebody."""
        user = access.user
        row: dict[str, Any] = {
            "who": who,
            "kind": access.kind,
            "email": user.email,
            "id": user.uuid,
            **access.dashboard,
        }
        for name in SHOWN:
            row[name] = to_second(getattr(access.record, name, None))
        row["temporary"] = self._temporary(access, row["level"])
        domain = domain_key((user.email or "").rpartition("@")[2])
        row["outside"] = domain not in self.verified if domain and self.verified else None
        row["change"] = self._change(row)
        # The rule for members reads addresses and levels; of others only the address counts.
        level = level_under(row) if access.kind == MEMBER else 0
        if row["temporary"]:
            level = level or 0
        row["kept"] = self.guards.why_kept(Member(user=user, level=level))
        row["look"] = _reasons(row, self.now)
        return row

    def _temporary(self, access: _Access, level: int | None) -> dict[str, Any] | None:
        """Return what a reviewer must know of the grants that gave somebody their level; ``None`` if none did."""
        if access.kind == COLLABORATOR:
            return None
        grants = _grants_of(self.noted, access.kind, access.user.email, access.user.uuid, self.homes)
        giving = [grant for grant in grants if grant.level == level]
        if not giving:
            return None
        last = max(giving, key=attrgetter("until"))
        return {"says": str(last), "then": last.then, "since": max(grant.since for grant in grants)}

    def _change(self, row: Json) -> str | None:
        """Return what changed since the last review; ``None`` if there was none."""
        if self.had is None:
            return None
        before = self.had.get(row["who"])
        if before is None:
            return "new"
        return "raised" if _is_raised(before, row) else ""


def _grants_of(
    noted: NotedAccess, kind: str, email: str | None, identity: str | None, homes: Mapping[str, str]
) -> tuple[TemporaryAccess, ...]:
    """
    Return the grants of a member or of an invite.

    :param homes: the key of the address of each user who is a member
    """
    key = address_key(email or "")
    if kind == MEMBER:
        return noted.of_member(key, identity).grants
    return noted.of_invite(key, identity, homes).grants


def _homes(access: Iterable[_Access]) -> dict[str, str]:
    """Return the key of the address of each user who is a member."""
    users = [one.user for one in access if one.kind == MEMBER]
    return {user.uuid: address_key(user.email) for user in users if user.uuid and user.email}


def level_under(row: Json) -> int | None:
    """Return the level of somebody without their temporary access, which a review judges; ``None`` without access."""
    temporary = row.get("temporary")
    level: int | None = temporary["then"] if temporary else row["level"]
    return level


def reviewed(population: Json, last_look: Json) -> dict[str, Any]:
    """Return the population of a review as it left it: without those who are gone, and with the levels decided on."""
    left = {row["who"]: row for row in last_look["people"]}
    people = [row for row in population["people"] if row["who"] in left]
    # Whom somebody raised meanwhile, nobody reviewed at that level.
    return {**population, "people": [row if _is_raised(row, left[row["who"]]) else left[row["who"]] for row in people]}


def _is_raised(before: Json, after: Json) -> bool:
    level_before = level_under(before)
    level_after = level_under(after)
    return level_before is not None and level_after is not None and level_after > level_before


def _reasons(row: Json, now: datetime | None) -> list[str]:
    """Return why a reviewer must look at somebody first; ``now`` if the service shows when people logged in."""
    reasons: list[str] = []
    level = level_under(row) or 0
    if row["kind"] == COLLABORATOR:
        level = 0
    if row["temporary"]:
        reasons.append(row["temporary"]["says"])
    if level >= LEVELS["owner"]:
        reasons.append("owner")
    elif level >= LEVELS["admin"]:
        reasons.append("admin")
    if row["is_2fa_enabled"] is False:
        reasons.append("no second factor")
    seen = parse_timestamp(row["last_login"])
    if now and seen is None and row["kind"] == MEMBER:
        reasons.append("never logged in")
    if now and seen and now.timestamp() - seen > UNSEEN_DAYS * 86_400:
        reasons.append(f"not seen for {UNSEEN_DAYS} days")
    if row["outside"]:
        reasons.append("outside the verified domains")
    if row["change"]:
        reasons.append(row["change"])
    if row["kept"]:
        reasons.append(f"stays: {row['kept']}")
    return reasons


def csv_rows(population: Json) -> list[dict[str, Any]]:
    """Return the rows of the file that people fill in, with :data:`COLUMNS`."""
    rows = ({**row, "look": ", ".join(row["look"]), "decision": ""} for row in population["people"])
    return [{name: row[name] for name in COLUMNS} for row in rows]


# The question and its answer


def _choices(row: Json) -> dict[str, str | int]:
    """Return what may be decided about somebody, by its words: the interface can lower members only."""
    choices: dict[str, str | int] = {KEEP: KEEP}
    if row["kept"]:
        return choices
    choices[REMOVE] = REMOVE
    if row["kind"] == MEMBER:
        level = level_under(row) or 0
        choices |= {LOWER_TO + name: number for name, number in LEVELS.items() if number < level}
    return choices


def form_of(population: Json) -> dict[str, dict[str, Any]]:
    """Return the fields of the question, as Airflow serializes a ``Param``."""
    people = population["people"]

    def field(title: str, *types: str, value: Any = "", **schema: Any) -> dict[str, Any]:
        schema |= {"title": title, "type": types[0] if len(types) == 1 else [*types]}
        return {"value": value, "description": None, "schema": schema, "source": "task"}

    form = {row["who"]: field(row["who"], "string", enum=[*_choices(row)]) for row in people}
    if len(people) > MAX_FIELDS:
        form = {}
        for word in dict.fromkeys(word for row in people for word in [*_choices(row)][1:]):
            whom = {"examples": [row["who"] for row in people if word in _choices(row)], "items": {"type": "string"}}
            form[word.replace(" ", "_")] = field(word, "null", "array", value=None, **whom)
        form["all_others_stay"] = field("all others stay", "boolean", value=False)
        form["decisions_file"] = field("or a file: population.csv with each decision", "null", "string")
        form["decisions_sha256"] = field("sha256 of this file", "null", "string")
    return {**form, "exceptions": field("exceptions, as address: reason", "null", "string", format="multiline")}


def question_of(population: Json, folder: str) -> str:
    """Return the Markdown body of the question: first those whom a reviewer must look at."""
    people, since = population["people"], population["previous"]
    first = [row for row in people if row["look"]]
    where = f"organization {code(population['organization_id'])} at {code(population['service'])}"
    text = f"{len(people)} people and invites have access to {where}, read {population['read_at']}. All of them are in "
    gone = inert(", ".join(population["left"] or ())) or "nobody"
    news = (
        f"What is new is so since {since['read_at']}. Gone since then: {gone}."
        if since
        else "There is no earlier review."
    )
    text += f"{code(f'{folder}/population.csv')}. {news}"
    lines = [text, "", f"To look at first: {len(first)}.", "", *table(HEADERS, map(_cells, first))]
    shown = fit(lines)
    return "\n".join([*shown, *([f"\n**{len(lines) - len(shown)} more are in the file.**"] if lines != shown else [])])


def _cells(row: Json) -> list[str]:
    days = (_said(row[name])[:10] for name in ("joined_at", "last_login"))
    facts = (row["kind"], _said(_level(row["level"])), *days, _said(row["is_2fa_enabled"]))
    return [row["who"], ", ".join(row["look"]), *facts]


def _level(level: Any) -> Any:
    return next((f"{name} ({number})" for name, number in LEVELS.items() if number == level), level)


def _said(value: Any) -> str:
    text = (", ".join(value) or "none") if isinstance(value, list) else str(value)
    return {"None": "not shown", "True": "yes", "False": "no"}.get(text, text)


def read_answer(population: Json, answer: Json, file_rows: Rows | None = None) -> dict[str, str | int]:
    """
    Return what was decided about each person: ``keep``, ``remove`` or a lower level.

    :param answer: the values of :func:`form_of`
    :param file_rows: the rows of the decisions file that the answer names
    :raises WorkspaceInputError: if it does not decide everybody, or is not an answer to this form
    """
    people, form = {row["who"]: row for row in population["people"]}, form_of(population)
    said: dict[str, dict[str, Any]] = {who: {"the form": answer.get(who)} if who in form else {} for who in people}
    for name in form:
        if "examples" in form[name]["schema"]:
            value = answer.get(name) or []
            for who in value if isinstance(value, list) else [value]:
                said.setdefault(_find(people, who), {})[f"field '{name}'"] = name.replace("_", " ")
    for number, row in enumerate(file_rows or (), start=2):
        said.setdefault(_find(people, row.get("who")), {})[f"row {number} of the file"] = row.get("decision")
    if file_rows is None and answer.get("all_others_stay") is True:
        said |= {who: {"all_others_stay": KEEP} for who, ways in said.items() if not ways}
    decided = {who: {_parse(people.get(who), word) for word in ways.values()} for who, ways in said.items()}
    problems = [f"{errors.shown(name)} is no field of the form" for name in answer if name not in form]
    for who, ways in said.items():
        if len(decided[who]) != 1 or None in decided[who]:
            expected = f"one of {', '.join(_choices(people[who]))}" if who in people else "somebody in the population"
            found = ", ".join(f"{where}: {str(word or '')[:40]!r}" for where, word in ways.items()) or "not decided"
            problems.append(f"{who[:MAX_SHOWN]!r} ({found}): expected {expected}")
    for who, why in read_exceptions(answer).items():
        if not why or _find(people, who) not in people:
            problems.append(f"exceptions, {who[:MAX_SHOWN]!r}: expected somebody in the population, ':' and the reason")
    if problems:
        msg = f"{AGAIN}{len(problems)} problems: {'; '.join(problems[:MAX_PROBLEMS])}"
        raise errors.WorkspaceInputError(msg, problem="answer-refused")
    return {who: decision for who, (decision,) in decided.items() if decision is not None}


def read_exceptions(answer: Json) -> dict[str, str]:
    """Return the exceptions of an answer: the reason for each person."""
    lines = (line.partition(":") for line in str(answer.get("exceptions") or "").splitlines() if line.strip())
    return {who.strip(): why.strip() for who, _, why in lines}


def _find(people: Json, who: Any) -> str:
    """Return somebody as the population names them, also after a spreadsheet; else what was given."""
    text = str(who or "").strip()
    return next((one for one in (text, text.removeprefix("'"), address_key(text)) if one in people), text)


def _parse(row: Json | None, word: Any) -> str | int | None:
    text, choices = str(word or "").strip().lower(), _choices(row).items() if row else ()
    return next((what for name, what in choices if text in (name, name.removeprefix(LOWER_TO), str(what))), None)


# What it changes


def judge(
    population: Json, decisions: Decisions, present: Json, left: str, gone: str, *, decided_at: str | None
) -> list[dict[str, Any]]:
    """
    Return the outcome of each decision as a later look shows it.

    :param present: the population as it is now
    :param left: what is said of what is left to do
    :param gone: what is said of who is not there
    :param decided_at: when it was decided; ``None`` if that is not known
    """
    moment = moment_of_decision(population, decided_at)
    rows: list[dict[str, Any]] = []
    for row, now in _pairs(population, present):
        decision = decisions[row["who"]]
        outcome = _outcome(row, decision, now, left, gone, moment)
        rows.append({"who": row["who"], "kind": row["kind"], "decision": decision, **outcome})
    return rows


def moment_of_decision(population: Json, decided_at: str | None) -> float:
    """Return when a review was decided, in seconds since 1970: when its population was read if nothing says it."""
    moment = parse_timestamp(decided_at)
    if moment is None:
        moment = parse_timestamp(population["read_at"])
    return moment or 0.0


def _identity(row: Json) -> tuple[str, str, Any]:
    """Return what tells people and boards apart, whatever they are called."""
    return row["kind"], row["id"] or row["who"], row.get("dashboard_id")


def _pairs(population: Json, present: Json) -> list[tuple[Json, Json | None]]:
    """Return each row of a population, and what it is now; ``None`` if they are gone."""
    known = {_identity(row) for row in population["people"]}
    now = {_identity(row): row for row in present["people"]}
    others = {row["who"]: row for identity, row in now.items() if identity not in known}
    return [(row, now.get(_identity(row)) or others.get(row["who"])) for row in population["people"]]


def _outcome(
    row: Json, decision: str | int, now: Json | None, left: str, gone: str, decided_at: float
) -> dict[str, str]:
    if now is None:
        return _result_of("kept" if decision == KEEP else "done", gone)
    changed = _changed(row, now)
    if decision == KEEP:
        return _result_of("changed" if _is_raised(row, now) else "kept", ", ".join(changed.values()))
    if list(changed) == ["level"] and level_under(now) == decision:
        return _result_of("done", changed["level"])
    if changed:
        return _result_of("changed", ", ".join(changed.values()))
    if now["kept"]:
        return _result_of("refused", now["kept"])
    if _waits(decision, now, decided_at):
        return _result_of(LATER, f"{now['temporary']['says']}; then {_after(decision)}")
    if not row["id"]:
        return _result_of("refused", f"{HIDDEN}their id")
    return _result_of(left)


def _result_of(outcome: str, detail: str = "") -> dict[str, str]:
    return {"outcome": outcome, "detail": detail}


def _changed(row: Json, now: Json) -> dict[str, str]:
    """Return what changed of somebody since their row was read, without what is temporary."""
    before = {"kind": row["kind"], "id": row["id"], "level": level_under(row)}
    after = {"kind": now["kind"], "id": now["id"], "level": level_under(now)}
    changed: dict[str, str] = {}
    for name, value in before.items():
        if value != after[name]:
            changed[name] = f"{name} {_said(value)} to {_said(after[name])}"
    return changed


def _waits(decision: str | int, now: Json, decided_at: float) -> bool:
    """Return whether a decision is done at the end of temporary access: all but a removal that is newer than it."""
    temporary = now.get("temporary")
    if not temporary:
        return False
    since: float = temporary["since"]
    return decision != REMOVE or since > decided_at


def _after(decision: str | int) -> str:
    return describe_level(decision) if isinstance(decision, int) else "removed"


def plan_decisions(
    client: WorkspaceClient,
    population: Json,
    decisions: Decisions,
    *,
    present: Json,
    decided_at: str,
    noted: NotedAccess = NOTHING_NOTED,
) -> tuple[Plan, list[dict[str, Any]]]:
    """
    Plan what was decided, where nothing changed since.

    :param noted: temporary access, which ends with a removal
    :return: the plan, and the rows of :func:`judge`
    :raises WorkspaceInputError: if no owner would be left
    """
    organization_id = population["organization_id"]
    rows = judge(population, decisions, present, NOT_SENT, "gone already", decided_at=decided_at)
    due = {row["who"] for row in rows if row["outcome"] == NOT_SENT}
    members = [row for row in present["people"] if row["kind"] == MEMBER]
    homes = {row["id"]: address_key(row["email"]) for row in members if row["id"] and row["email"]}
    changes: list[Change] = []
    for row, now in _pairs(population, present):
        if row["who"] not in due:
            continue
        level = (now or row)["level"]
        change = _change(organization_id, {**row, "level": level}, decisions[row["who"]], f"decided {decided_at}")
        if isinstance(change.operation, ops.members.DeleteMember | ops.invites.DeleteInvite):
            change = replace(change, ends=_grants_of(noted, row["kind"], row["email"], row["id"], homes))
        changes.append(change)
    changes.sort(key=lambda change: ORDER.index(change.action))
    check_owner_stays([_member(row) for row in members], changes)
    return Plan(client.settings.organization_at_service(organization_id), changes, members=len(members)), rows


def _member(row: Json) -> Member:
    return Member(user=User(uuid=row["id"], email=row["email"]), level=row["level"])


def _change(organization_id: str, row: Json, decision: str | int, why: str) -> Change:
    operation_class = ops.members.UpdateMember
    if decision == REMOVE:
        operation_class = REMOVALS[row["kind"]]
    fields: Json = {
        **row,
        "organization_id": organization_id,
        "level": decision,
        "user_uuid": row["id"],
        "invite_id": row["id"],
    }
    values = {name: fields[name] for name in operation_class.model_fields if name in fields}
    operation = operation_class(**values)
    part = "collaborators" if row["kind"] == COLLABORATOR else "members"
    name = f"{row['kind']} {row['who']}"
    before = {"level": row["level"]}
    if decision == REMOVE:
        return Change("remove", part, name, {}, before, why, operation)
    return Change("change", part, name, {"level": decision}, before, why, operation)


def outcomes_of(plan: Plan, rows: Rows) -> list[dict[str, Any]]:
    """Return the rows of :func:`plan_decisions` after their plan was applied."""
    unknown = (NOT_SENT, "the task ended before it, or the person is gone")
    results = {change.name: plan.outcomes.get(change, unknown) for change in plan.changes}
    found = {name: {"outcome": outcome, "detail": why or "sent"} for name, (outcome, why) in results.items()}
    return [{**row, **found.get(f"{row['kind']} {row['who']}", {})} for row in rows]


def left_of(outcomes: Rows) -> list[str]:
    """Return what was decided and is not done, in words."""
    return [f"{row['who']} ({row['decision']}): {_result(row)}" for row in outcomes if row["outcome"] not in FINE]


def _result(row: Json) -> str:
    return ", ".join(filter(None, (row["outcome"], row["detail"])))


def page_of(review: Json, population: Json, decisions: Json, sent: Rows, last_look: Json) -> str:
    """
    Return the page about a review, in Markdown; what there is none of is empty.

    :param review: ``state``, ``missing`` (what was not done), ``rules``, ``outcomes`` (the rows of :func:`judge` for
        the last look), ``files`` (the sha256 of each), and more facts
    :param decisions: ``by`` (``id`` and ``name``), ``decisions``, ``exceptions``, and more facts
    :param sent: the rows of :func:`outcomes_of` of all tries, the earliest first
    """
    people, decided = population.get("people", ()), decisions.get("decisions", {})
    by, known, previous = decisions.get("by", {}), {row["who"] for row in people}, population.get("previous")
    facts = {name: one for name, one in {**review, **decisions}.items() if not isinstance(one, dict | list)}
    facts |= {"last_look_at": last_look.get("read_at", "none"), "people": len(people)}
    facts["previous_review"] = "{folder}, read {read_at} (sha256 {sha256})".format(**previous) if previous else "none"
    facts["verified_domains"] = population.get("verified_domains", [])
    facts |= {name: "not set" if one is None else one for name, one in review["rules"].items()}
    facts["decided_by"] = f"{by['name']} (Airflow user {by['id']})" if by else "nobody"
    facts |= {f"decided {_level(decision)}": count for decision, count in Counter(decided.values()).items()}
    told = ((name.replace("_", " "), _said(one)) for name, one in facts.items())
    columns = (decided, _told(sent), _told(review["outcomes"]))
    rows = ([*_cells(row), *(_level(column.get(row["who"], "-")) for column in columns)] for row in people)
    since = [row for row in last_look.get("people", ()) if row["who"] not in known]
    parts = {
        f"Access review: {review['state']}": table(("what", ""), told),
        "Not done": table(("what",), zip(review["missing"])),
        f"Everybody with access ({review.get('read_at')})": table((*HEADERS, "decision", "done", "last look"), rows),
        "Exceptions": table(("who", "why"), decisions.get("exceptions", {}).items()),
        "Access that ended since the previous review": table(("who",), zip(population.get("left") or ())),
        "Access since then, left to the next review": table(HEADERS, map(_cells, since)),
        "What this cannot know": [NEVER_KNOWN],
        "Files": [*table(("file", "sha256"), review["files"].items()), "", "That of this page is in review.json."],
    }
    return "\n".join(line for title, lines in parts.items() for line in (f"## {title}", "", *lines, ""))


def _told(rows: Rows) -> dict[str, str]:
    """Return what became of each person, in words; of several tries, each that says something else."""
    told: dict[str, list[str]] = {}
    for row in rows:
        told.setdefault(row["who"], []).append(_result(row))
    return {who: ", then ".join(dict.fromkeys(results)) for who, results in told.items()}
