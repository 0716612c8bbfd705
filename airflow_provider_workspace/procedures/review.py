"""An access review: who has access, what a reviewer may decide and did, what that changes, and the page about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace import errors
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, domain_key
from airflow_provider_workspace.api.levels import LEVELS, parse_level
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.markdown import code, fit, table
from airflow_provider_workspace.procedures.members import HIDDEN, ORDER, PROTECTED, Guards, check_owner_stays
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

Json = Mapping[str, Any]
KEEP, REMOVE, LOWER_TO = "keep", "remove", "lower to "
# Columns for people, who fill in the last one.
COLUMNS = (
    "who", "kind", "email", "level", "joined_at", "last_login", "is_2fa_enabled", "outside", "change", "look", "decision",
)  # fmt: skip
# More people are not asked about one by one.
MAX_FIELDS = 25
UNSEEN_DAYS = 90
# Outcomes with which nothing is left to do.
FINE = ("done", "kept")
NEVER_KNOWN = (
    "who granted access, and why",
    "other API keys, and what they may do",
    "access to single projects",
    "whose API key read this, and whether the service shows that person everything",
)


def read_population(
    client: WorkspaceClient,
    organization_id: str,
    *,
    now: datetime,
    dashboards: Iterable[Json] = (),
    previous: Json | None = None,
) -> dict[str, Any]:
    """
    Read everybody who has access: members, open invites, and the collaborators of some dashboards.

    :param dashboards: ``project_id`` and ``dashboard_id`` of each
    :param previous: the population of the last review, see :func:`reviewed`; ``None`` if there was none
    :raises WorkspaceIncompleteListError: if a list is known to be short
    """
    where = {"organization_id": organization_id}
    domains = read_rows(client, ops.domains.ListDomains(**where))
    verified = sorted({domain_key(one.domain) for one in domains if one.domain and one.is_verified})
    # Before the members, so that people who join in between are not missed.
    invites = read_rows(client, ops.invites.ListInvites(**where))
    members = read_rows(client, ops.members.ListMembers(**where))
    addresses = {one.user.uuid: one.user.email for one in members if one.user}
    shows_logins = any(one.last_login for one in members)
    earlier = None if previous is None else {row["who"]: row for row in previous["people"]}
    people: dict[str, dict[str, Any]] = {}

    def add(kind: str, its_id: str | None, email: str | None, record: Any, **dashboard: Any) -> None:
        who = address_key(email or "") or f"{kind} {its_id}"
        who += f" on dashboard {dashboard['dashboard_id']}" if dashboard else ""
        who = f"{who} ({kind} {its_id})" if who in people else who
        facts = {name: getattr(record, name, None) for name in ("level", "joined_at", "last_login", "is_2fa_enabled")}
        row = {"who": who, "kind": kind, "email": email, "id": its_id, **facts, **dashboard}
        row["outside"] = domain_key(email.rpartition("@")[2]) not in verified if email and verified else None
        row["change"] = None if earlier is None else _change_since(row, earlier.get(who))
        row["look"] = _reasons(row, now, shows_logins)
        people[who] = row

    for member in members:
        user = member.user or User()
        add("member", user.uuid, user.email, member)
    for invite in invites:
        if not invite.is_expired:
            add("invite", invite.id, invite.target_email, invite)
    for dashboard in dashboards:
        ids = {name: dashboard[name] for name in ("project_id", "dashboard_id")}
        for one in read_rows(client, ops.dashboards.ListDashboardCollaborators(**ids)):
            uuid = one.user_uuid or one.label
            add("collaborator", uuid, (one.user and one.user.email) or addresses.get(uuid), one, **ids)
    return {
        "read_at": now.isoformat(),
        "service": client.settings.base_url,
        "organization_id": organization_id,
        "verified_domains": verified,
        "previous": previous and {"read_at": previous["read_at"]},
        "people": sorted(people.values(), key=lambda row: not row["look"]),
    }


def reviewed(population: Json, last_look: Json) -> dict[str, Any]:
    """Return the population of a review without those whom it removed, and with the levels that it left."""
    left = {row["who"]: row for row in last_look["people"]}
    people = [row for row in population["people"] if row["who"] in left]
    levels = ([one["level"] for one in (row, left[row["who"]]) if one["level"] is not None] for row in people)
    return {**population, "people": [row | {"level": min(has, default=None)} for row, has in zip(people, levels)]}


def _change_since(row: Json, earlier: Json | None) -> str:
    if earlier is None:
        return "new"
    return "raised" if _is_raised(earlier, row) else ""


def _is_raised(before: Json, after: Json) -> bool:
    return None not in (before["level"], after["level"]) and after["level"] > before["level"]


def _reasons(row: Json, now: datetime, shows_logins: bool) -> list[str]:
    """Return why a reviewer must look at somebody first."""
    level = 0 if row["kind"] == "collaborator" else row["level"] or 0
    seen = parse_timestamp(row["last_login"])
    reasons = {
        "owner": level >= LEVELS["owner"],
        "admin": LEVELS["admin"] <= level < LEVELS["owner"],
        "no second factor": row["is_2fa_enabled"] is False,
        "never logged in": row["kind"] == "member" and shows_logins and seen is None,
        f"not seen for {UNSEEN_DAYS} days": seen is not None and now.timestamp() - seen > UNSEEN_DAYS * 86_400,
        "outside the verified domains": row["outside"],
        row["change"] or "": row["change"],
    }
    return [reason for reason, applies in reasons.items() if applies]


def csv_rows(population: Json) -> list[dict[str, Any]]:
    """Return the rows of the file that people fill in, with :data:`COLUMNS`."""
    return [
        {name: row.get(name) for name in COLUMNS} | {"look": ", ".join(row["look"]), "decision": ""}
        for row in population["people"]
    ]


# The question and its answer


def _choices(row: Json) -> list[str]:
    """Return what may be decided about somebody: the interface cannot lower others than members."""
    level = (row["level"] or 0) if row["kind"] == "member" else 0
    return [KEEP, REMOVE, *(LOWER_TO + name for name, number in LEVELS.items() if number < level)]


def form_of(population: Json) -> dict[str, dict[str, Any]]:
    """Return the fields of the question, as Airflow serializes a ``Param``; an answer that decides nobody is none."""
    people = population["people"]

    def field(value: Any, title: str, description: str = "", **schema: Any) -> dict[str, Any]:
        return {"value": value, "description": description, "schema": {"title": title, **schema}, "source": "task"}

    text: dict[str, Any] = {"type": ["null", "string"]}
    form: dict[str, dict[str, Any]] = {}
    if len(people) <= MAX_FIELDS:
        for row in people:
            form[row["who"]] = field("", row["who"], ", ".join(row["look"]), type="string", enum=_choices(row))
    else:
        for word in dict.fromkeys(word for row in people for word in _choices(row)[1:]):
            examples = [row["who"] for row in people if word in _choices(row)]
            many = {"type": ["null", "array"], "items": {"type": "string"}, "examples": examples}
            form[word.replace(" ", "_")] = field(None, word, **many)
        form["all_others_stay"] = field(False, "all others stay", "They are kept as they are", type="boolean")
        form["decisions_file"] = field(
            "", "decisions file", "Instead: population.csv with a decision for everybody, at another path", **text
        )
        form["decisions_sha256"] = field("", "sha256 of the decisions file", **text)
    form["exceptions"] = field("", "exceptions", "One a line, as address: reason", format="multiline", **text)
    return form


def question_of(population: Json, folder: str) -> str:
    """Return the Markdown body of the question: first those whom a reviewer must look at."""
    people = population["people"]
    first = [row for row in people if row["look"]]
    since = population["previous"]
    lines = [
        f"Decide who keeps access to organization {code(population['organization_id'])} at "
        f"{code(population['service'])}: {len(people)} people and open invites, read {population['read_at']}. "
        + (f"Changes are since the review of {code(since['read_at'])}." if since else "There is no earlier review."),
        "",
        f"All are in {code(f'{folder}/population.csv')}. Look at these {len(first)} first:" if first else "",
        "",
        *(_facts(first) if first else ()),
    ]
    shown = fit(lines)
    hidden = len(lines) - len(shown)
    return "\n".join([*shown, *([f"\n**{hidden} more to look at are in the file.**"] if hidden else [])])


def _facts(people: Iterable[Json]) -> list[str]:
    columns = ("who", "kind", "level", "joined", "last log-in", "second factor", "look")
    names = ("joined_at", "last_login", "is_2fa_enabled")
    return table(
        columns,
        ((r["who"], r["kind"], _level(r["level"]), *(_shown(r[n]) for n in names), ", ".join(r["look"])) for r in people),
    )


def _shown(value: Any) -> str:
    return {None: "not shown", True: "yes", False: "no"}.get(value, str(value))


def _level(level: int | None) -> str:
    return next((f"{name} ({level})" for name, number in LEVELS.items() if number == level), _shown(level))


def read_answer(population: Json, answer: Json, file_rows: Sequence[Json] | None = None) -> dict[str, str | int]:
    """
    Return what was decided about each person: ``keep``, ``remove`` or a lower level.

    :param answer: the values of :func:`form_of`
    :param file_rows: the rows of the decisions file that the answer names
    :raises WorkspaceInputError: if it does not decide everybody, or is not an answer to this form
    """
    people, form = {row["who"]: row for row in population["people"]}, form_of(population)
    problems = [f"{errors.shown(name)} is no field of the form" for name in answer if name not in form]
    said: list[tuple[str, Any, Any]] = []
    for name in form:
        value = answer.get(name)
        if name in people:
            said.append((f"field '{name}'", name, value))
        elif "examples" in form[name]["schema"]:
            many: list[Any] = value if isinstance(value, list) else [value] if value else []
            said += [(f"field '{name}'", who, name.replace("_", " ")) for who in many]
    for number, row in enumerate(file_rows or (), start=2):
        said.append((f"row {number} of the decisions file", row.get("who"), row.get("decision")))
    decided: dict[str, str | int] = {}
    for where, who, word in said:
        key = _find(people, who)
        try:
            decision = _parse(people[key], word)
        except KeyError:
            problems.append(f"{where}: {errors.shown(who)} is not in the population")
        except ValueError as error:
            problems.append(f"{where}: {key}: {error}")
        else:
            if decided.setdefault(key, decision) != decision:
                problems.append(f"{where}: {key} is decided twice, as {decided[key]} and as {decision}")
    stay = file_rows is None and answer.get("all_others_stay") is True
    missing = [] if stay or problems else [who for who in people if who not in decided]
    if missing and file_rows is None:
        problems.append("field 'all_others_stay': switch it on, or name a decisions file that decides everybody")
    else:
        problems += [f"{who} has no row in the decisions file" for who in missing]
    problems += _exceptions(people, answer)[1]
    if problems:
        more = f"; and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise errors.WorkspaceInputError(
            f"Start a new run to decide again: {'; '.join(problems[:10])}{more}", problem="answer-refused"
        )
    return {who: decided.get(who, KEEP) for who in people}


def read_exceptions(population: Json, answer: Json) -> dict[str, str]:
    """Return the exceptions of an answer that :func:`read_answer` accepts: the reason for each person."""
    return _exceptions({row["who"]: row for row in population["people"]}, answer)[0]


def _exceptions(people: Json, answer: Json) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(str(answer.get("exceptions") or "").splitlines(), start=1):
        name, _, reason = line.partition(":")
        who = _find(people, name)
        if who in people and reason.strip():
            found[who] = "; ".join(filter(None, [found.get(who), reason.strip()]))
        elif line.strip():
            problems.append(f"field 'exceptions', line {number}: expected the address of somebody here, ':', and why")
    return found, problems


def _find(people: Json, who: Any) -> str:
    """Return somebody as the population names them, also after a spreadsheet; else what was given."""
    text = str(who or "").strip()
    return next((one for one in (text, text.removeprefix("'"), address_key(text)) if one in people), text)


def _parse(row: Json, word: Any) -> str | int:
    text, choices = str("" if word is None else word).strip().lower(), _choices(row)
    if text in (KEEP, REMOVE):
        return text
    try:
        level = parse_level(text.removeprefix(LOWER_TO))
    except ValueError:
        level = 0
    if row["kind"] != "member" or not 0 < level < (row["level"] or 0):
        raise ValueError(f"expected {', '.join(choices)}, not {errors.shown(text)}")
    return level


# What it changes


def judge(population: Json, decisions: Mapping[str, str | int], guards: Guards, present: Json) -> list[dict[str, Any]]:
    """
    Return the outcome of each decision as a later look shows it; ``not sent`` is what is left to do.

    :param present: the population as it is now
    """
    known = {_identity(row) for row in population["people"]}
    exact = {_identity(row): row for row in present["people"]}
    others = {row["who"]: row for row in present["people"] if _identity(row) not in known}
    rows: list[dict[str, Any]] = []
    for row in population["people"]:
        decision, now = decisions[row["who"]], exact.get(_identity(row)) or others.get(row["who"])
        outcome, detail = _outcome(row, decision, now, guards)
        rows.append({"who": row["who"], "kind": row["kind"], "decision": decision, "outcome": outcome, "detail": detail})
    return rows


def _identity(row: Json) -> tuple[Any, ...]:
    return row["kind"], row["id"] or row["who"], row.get("dashboard_id")


def _outcome(row: Json, decision: str | int, now: Json | None, guards: Guards) -> tuple[str, str]:
    if now is None:
        return ("kept" if decision == KEEP else "done"), "gone already"
    differs = [name for name in ("kind", "id", "level") if row[name] != now[name]]
    changed = ", ".join(f"its {name} was {_shown(row[name])} and is {_shown(now[name])}" for name in differs)
    if decision == KEEP:
        return ("changed" if _is_raised(row, now) else "kept"), changed
    if differs == ["level"] and now["level"] == decision:
        return "done", "at this level already"
    if changed:
        return "changed", changed
    hold = PROTECTED if address_key(row["email"] or "") in guards.protected else ""
    if row["kind"] == "member":
        hold = guards.why_kept(_member(row))
    elif not row["email"]:
        hold = HIDDEN + "their address"
    hold = hold or ("" if row["id"] else HIDDEN + "their id")
    return ("refused", hold) if hold else ("not sent", "")


def _member(row: Json) -> Member:
    return Member(user=User(uuid=row["id"], email=row["email"]), level=row["level"])


def plan_decisions(
    client: WorkspaceClient,
    population: Json,
    decisions: Mapping[str, str | int],
    guards: Guards,
    *,
    present: Json,
    decided_at: str,
) -> tuple[Plan, list[dict[str, Any]]]:
    """
    Plan what was decided, where nothing changed since.

    :return: the plan, and the rows of :func:`judge`
    :raises WorkspaceInputError: if no owner would be left
    """
    organization_id, people = population["organization_id"], {row["who"]: row for row in population["people"]}
    rows = judge(population, decisions, guards, present)
    changes = [
        _change(organization_id, people[row["who"]], row["decision"], f"decided {decided_at}")
        for row in rows
        if row["outcome"] == "not sent"
    ]
    changes.sort(key=lambda change: ORDER.index(change.action))
    members = [_member(row) for row in present["people"] if row["kind"] == "member"]
    check_owner_stays(members, changes)
    return Plan(client.settings.organization_at_service(organization_id), changes, members=len(members)), rows


def _change(organization_id: str, row: Json, decision: str | int, why: str) -> Change:
    name, before, where = f"{row['kind']} {row['who']}", {"level": row["level"]}, {"organization_id": organization_id}
    if row["kind"] == "collaborator":
        ids = {key: row[key] for key in ("project_id", "dashboard_id")}
        leave = ops.dashboards.RemoveDashboardCollaborator(**ids, user_uuid=row["id"])
        return Change("remove", "collaborators", name, {}, before, why, leave)
    if row["kind"] == "invite":
        withdraw = ops.invites.DeleteInvite(**where, invite_id=row["id"])
        return Change("remove", "members", name, {}, before, why, withdraw)
    if decision == REMOVE:
        delete = ops.members.DeleteMember(**where, user_uuid=row["id"])
        return Change("remove", "members", name, {}, before, why, delete)
    update = ops.members.UpdateMember(**where, user_uuid=row["id"], level=decision)
    return Change("change", "members", name, {"level": decision}, before, why, update)


def outcomes_of(plan: Plan, rows: Iterable[Json], *, applied: bool) -> list[dict[str, Any]]:
    """
    Return the rows of :func:`plan_decisions` after their plan was applied.

    :param applied: whether applying it raised nothing
    """
    unsent = ("done", "gone meanwhile") if applied else ("not sent", "the task ended before it")
    found = {change.name: plan.outcomes.get(change, unsent) for change in plan.changes}

    def after(row: Json) -> dict[str, Any]:
        outcome, detail = found.get(f"{row['kind']} {row['who']}", (row["outcome"], row["detail"]))
        return {**row, "outcome": outcome, "detail": detail or ("sent" if outcome == "done" else "")}

    return [after(row) for row in rows]
