"""Apply a plan, and check by a plan that is made again that nobody has what it took."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.comparison import describe_unshown, unshown_of_record
from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.api.outcome import Outcome, is_refused
from airflow_provider_workspace.procedures import ensure
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.plan import PENDING, Change, ChangeResult, Plan, counted

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.access_list import AccessList
    from airflow_provider_workspace.procedures.journal import Journal

log = logging.getLogger(__name__)

# Why a removal is done that found nothing: an invite may also be gone because it was accepted.
KEY_OWNER_GONE = "it was gone already"
# Why somebody is in the plan that is made again, and was not before, by the kind that begins the name of a change.
MEANWHILE = {"member": "joined meanwhile", "invite": "invited meanwhile", "collaborator": "added meanwhile"}
# After so many refusals the changes are not the cause: the API key may lack the scope.
MAX_REFUSALS = 5
# The answers to an API key that does not work any more.
KEY_REFUSED = (errors.WorkspaceAuthenticationError, errors.WorkspacePermissionError)
# Operations that take access from a member, perhaps from the owner of the API key.
OF_MEMBERS = (DeleteMember, UpdateMember)


class WorkspaceSyncIncompleteError(errors.WorkspaceError):
    """
    The service refused some of the changes and applied the others.

    :param causes: the errors
    """

    problem = "changes-refused"

    def __init__(self, message: str, causes: Collection[errors.WorkspaceError]) -> None:
        super().__init__(message, permanent=all(cause.permanent for cause in causes))
        self.causes = tuple(causes)


def apply(
    client: WorkspaceClient,
    plan: Plan,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
    plan_again: Callable[[], Plan],
    memory_of: Callable[[Change], Any] = lambda _: None,
    journal: Journal | None = None,
) -> None:
    """
    Send the changes that have no outcome yet, and check by a plan that is made again that nothing of them is left.

    :param plan_again: plans the same again
    :param journal: see :func:`send_changes`
    :raises WorkspaceNotAppliedError: if a change that succeeded is still to be done, or somebody has access who should
        not
    """
    try:
        send_changes(client, plan, invite, memory_of, journal)
        check_applied(client, plan, plan_again)
        _watch_withdrawn_invites(client, plan, plan_again)
    except errors.WorkspaceError as error:
        _tell_who_lost_an_invite(plan, error)
        raise
    finally:
        _note_outcomes(plan, journal)


def _tell_who_lost_an_invite(plan: Plan, error: errors.WorkspaceError) -> None:
    """Say in an error whose open invite was withdrawn to be renewed, without a new one."""
    lost = plan.lost_invites
    if lost:
        people = counted(len(lost), "person has", "people have")
        named = errors.name_first(lost, "the plan", separator=", ")
        why = f"{people} no invite now: the old one was withdrawn, and no new one was sent"
        error.args = (f"{why}. Run this again when the cause is gone, or invite them by hand: {named}. {error}",)


def _note_outcomes(plan: Plan, journal: Journal | None) -> None:
    """Note what came of the changes that were sent."""
    if journal is None:
        return
    for change, result in plan.outcomes.items():
        if change.sends:
            journal.end(plan.planned_for, change.key, *result)
    journal.write()


def send_changes(
    client: WorkspaceClient,
    plan: Plan,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
    memory_of: Callable[[Change], Any] = lambda _: None,
    journal: Journal | None = None,
) -> None:
    """
    Send the changes that have no outcome yet, and note their outcomes in the plan.

    A change that is refused does not stop the others. People are invited last, and together.

    :param invite: invites the people of these rows
    :param memory_of: returns what the task remembers of a change across its tries
    :param journal: where each change is noted before it is sent, but for invites, which ``invite`` notes
    :raises WorkspaceSyncIncompleteError: if a change was refused
    """
    try:
        refused = _send_changes(client, plan, memory_of, journal)
        if len(refused) < MAX_REFUSALS:
            _invite(plan, invite)
    except KEY_REFUSED as error:
        _raise_if_key_owner_lost_access(plan, error)
        raise
    except WorkspaceInvitesIncompleteError as error:
        if isinstance(error.__cause__, KEY_REFUSED):
            _raise_if_key_owner_lost_access(plan, error)
        raise
    finally:
        _note_outcomes(plan, journal)
    if not refused:
        return
    incomplete = _incomplete(plan, refused)
    if _are_all_forbidden(plan, refused):
        _raise_if_key_owner_lost_access(plan, incomplete)
    raise incomplete


def _incomplete(plan: Plan, refused: Mapping[Change, errors.WorkspaceError]) -> WorkspaceSyncIncompleteError:
    """Return the error of changes that were refused."""
    sent = [change for change in plan.changes if change.sends]
    lines: list[str] = []
    for change in refused:
        reason = plan.outcomes[change].reason
        lines.append(f"{change.action} {change.name}: {reason}")
    named = errors.name_first(lines, "the log")
    numbers = f"{len(refused)} of {counted(len(sent), 'change', 'changes')}"
    stopped = ", so the others were not sent" if len(refused) == MAX_REFUSALS else ""
    return WorkspaceSyncIncompleteError(
        f"The service refused {numbers}{stopped}. Correct the cause, then run this again: it sends only what is left. "
        f"{named}",
        refused.values(),
    )


def _are_all_forbidden(plan: Plan, refused: Mapping[Change, errors.WorkspaceError]) -> bool:
    """Return whether nothing but 403 came after the last change that took access from a member."""
    if plan.last_taken is None:
        return False
    taken_at = plan.changes.index(plan.last_taken)
    later = [refused[change] for change in plan.changes[taken_at:] if change in refused]
    if not later:
        return False
    return all(isinstance(error, errors.WorkspacePermissionError) for error in later)


def _raise_if_key_owner_lost_access(plan: Plan, error: errors.WorkspaceError) -> None:
    """
    Name who lost access directly before the service refused the API key; the interface cannot tell whose key it is.

    :raises WorkspaceError: if somebody did
    """
    if plan.last_taken is None:
        return
    lost = "was removed" if plan.last_taken.removes else "got a lower level"
    raise key_owner_removed(f"{plan.last_taken.name} {lost}", error) from None


def key_owner_removed(event: str, error: errors.WorkspaceError) -> errors.WorkspaceError:
    """
    Return the error of an API key that may be of somebody who lost access.

    :param event: who lost what
    :param error: what the service answered then
    """
    return errors.WorkspaceError(
        f"The API key stopped working right after {event}, and may be theirs. Put the API key of somebody who stays "
        f"into the connection, then run this again: it checks what was sent. {error}",
        problem="key-owner-removed",
    )


def _send_changes(
    client: WorkspaceClient, plan: Plan, memory_of: Callable[[Change], Any], journal: Journal | None
) -> dict[Change, errors.WorkspaceError]:
    """Send the changes that invite nobody, until too many are refused; return the errors of those that are."""
    refused: dict[Change, errors.WorkspaceError] = {}
    for number, planned in enumerate(plan.changes):
        if planned.invites or planned in plan.outcomes:
            continue
        if len(refused) == MAX_REFUSALS:
            break
        change = planned.unless_held()
        plan.changes[number] = change
        if journal and change.sends:
            journal.begin([plan.sending_of(change)])
        try:
            record = change.send(client, memory_of(change))
        except errors.WorkspaceNotFoundError as error:
            if not isinstance(change.operation, UpdateMember):
                plan.failures[change] = error
                raise
            ensure.check_gone(error)
            log.warning("%s has left since the members were read. The next run invites them.", change.name)
        except errors.WorkspaceRequestError as error:
            plan.failures[change] = error
            if not (is_refused(error, one_of_many=True) or isinstance(error, errors.WorkspaceNotAppliedError)):
                raise
            log.error("Refused: %s", error)  # noqa: TRY400 - one error for all of them follows
            detail = getattr(error, "detail", None)
            plan.outcomes[change] = ChangeResult("refused", str(detail or error))
            refused[change] = error
        else:
            if isinstance(record, errors.WorkspaceNotFoundError):
                plan.outcomes[change] = ChangeResult("done", KEY_OWNER_GONE)
            elif change.sends and change.operation is not None:
                plan.outcomes[change] = ChangeResult("done")
                plan.not_shown[change] = _not_shown(change, change.operation, record)
                plan.last_taken = change if isinstance(change.operation, OF_MEMBERS) and change.takes_access else None
    return refused


def _not_shown(change: Change, operation: Operation[Any], record: object) -> list[str]:
    """Return the fields that were sent and that the answer does not show, and warn of them."""
    names = unshown_of_record(operation, record)
    if names and change.action != "create":  # the client warns of a create
        log.warning("%s: %s", change.name, describe_unshown(operation, names))
    return names


def _invite(plan: Plan, invite: Callable[[list[dict[str, Any]]], InvitesReport]) -> None:
    """Invite the people of a plan together, if there are any."""
    open_changes = [change for change in plan.changes if change not in plan.outcomes]
    invites = {change: change.operation for change in open_changes if isinstance(change.operation, CreateInvite)}
    if not invites:
        return
    failed: WorkspaceInvitesIncompleteError | None = None
    try:
        report = invite([operation.payload() for operation in invites.values()])
    except WorkspaceInvitesIncompleteError as error:
        failed = error
        report = error.report
    changes = list(invites)
    for entry in report.entries:
        change = changes[entry.row - 1]  # the rows are in the order of the changes
        plan.outcomes[change] = ChangeResult(entry.status, entry.reason)
    if report.counts["invited"]:
        plan.last_taken = None
    if failed:
        raise failed
    log.info("%s", report.table())


def raise_if_access_is_left(unproven: Sequence[str], left_by_hand: Sequence[str]) -> None:
    """
    Refuse to end well while somebody has, or may have, access that should be taken; everything else was done.

    :param unproven: see :attr:`~airflow_provider_workspace.procedures.plan.Plan.unproven`
    :param left_by_hand: see :attr:`~airflow_provider_workspace.procedures.plan.Plan.left_by_hand`
    :raises WorkspaceError: naming the people of the first of these that has any
    """
    if unproven:
        people = counted(len(unproven), "person", "people")
        named = errors.name_first(unproven, "the plan")
        raise errors.WorkspaceError(
            f"{people} may still have access: the lists do not show whether it was taken. Look for each in the "
            f"workspace; all other changes were made: {named}",
            problem="people-hidden",
        )
    if left_by_hand:
        people = counted(len(left_by_hand), "person", "people")
        named = errors.name_first(left_by_hand, "the plan")
        raise errors.WorkspaceError(
            f"{people} should lose access that only a person may take. Take it by hand, or correct the rows; all "
            f"other changes were made: {named}",
            problem="access-left",
        )


def check_applied(client: WorkspaceClient, plan: Plan, plan_again: Callable[[], Plan]) -> None:
    """
    Plan again until nothing is left of what was sent, and nobody who should be gone or lower is in the plan.

    A change without an outcome met a 404: its member is gone, or the list still shows them as they were.

    :param plan: what was sent; receives the outcomes of what is left
    :raises WorkspaceNotAppliedError: if something is left after the consistency time
    """
    sent = [change for change in plan.changes if change.action in PENDING and _is_done_or_gone(plan, change)]
    if not sent:
        return
    operation: Any = sent[0].operation
    left: list[_Left] = []

    def is_done() -> bool:
        nonlocal left
        left = _left_of(plan, sent, _read_again(plan, plan_again, sent))
        return not left

    try:
        ensure.check_done(client, "each change was made, or its member is gone", operation, is_done)
    except errors.WorkspaceInputError as error:  # it says that nothing was sent, which is true of the second plan alone
        message = f"The changes were sent, but could not be checked. Run this again to check them. {error.why}"
        raise errors.WorkspaceNotAppliedError(
            message, operation=type(operation).__name__, outcome=Outcome.UNKNOWN.value
        ) from None
    except errors.WorkspaceNotAppliedError as error:
        _explain(error, plan, left)
        raise


def _read_again(plan: Plan, plan_again: Callable[[], Plan], sent: Sequence[Change]) -> Plan:
    """
    Plan again; a key that may not read the lists any more proves nothing about who lost access.

    :param plan: what was sent
    :raises WorkspaceError: if it may not, and something was taken
    """
    try:
        again = plan_again()
    except KEY_REFUSED as error:
        _raise_if_key_owner_lost_access(plan, error)
        is_forbidden = isinstance(error, errors.WorkspacePermissionError)
        if not (is_forbidden and any(change.takes_access for change in sent)):
            raise
        raise errors.WorkspaceError(
            f"The changes were sent, but this API key may not read whether they were made. Look in the workspace. "
            f"{error}",
            permanent=True,
            problem="effect-not-shown",
        ) from None
    again.leave_out(plan.left_out)
    plan.last_taken = None
    return again


def _watch_withdrawn_invites(client: WorkspaceClient, plan: Plan, plan_again: Callable[[], Plan]) -> None:
    """
    Check once more when the lists must show whoever accepted an invite at the moment of its withdrawal.

    Also after a success: a service may withdraw the invite and let the person in.

    :raises WorkspaceNotAppliedError: if somebody has access who should not
    """
    if not plan.withdraws_invites:
        return
    ensure.wait_for_who_accepted(client)
    again = Plan()

    def plan_last() -> Plan:
        nonlocal again
        again = plan_again()
        return again

    check_applied(client, plan, plan_last)
    plan.joined = list(again.access_list.joined_since(plan.access_list).values())


def _is_done_or_gone(plan: Plan, change: Change) -> bool:
    """Return whether a change was made, or met a 404."""
    result = plan.outcomes.get(change)
    return result is None or result.status == "done"


@dataclass(frozen=True, slots=True)
class _Left:
    """
    What is left to do after a plan was applied.

    :param change: the change that was sent, or a new one of somebody who should lose access
    :param reason: what the person is now; empty if it is as before
    """

    change: Change
    reason: str


def _left_of(plan: Plan, sent: Sequence[Change], again: Plan) -> list[_Left]:
    """Return what is still to be done, and who has access that they should not have."""
    pending = {(change.part, change.name) for change in again.changes if change.action in PENDING}
    before = {(change.action, change.name) for change in plan.changes}
    new = [change for change in again.changes if (change.action, change.name) not in before]
    left: list[_Left] = []
    for change in sent:
        if (change.part, change.name) in pending:
            left.append(_Left(change, ""))
            continue
        reason = _what_now(change, new) or _what_they_have(change, plan.access_list, again.access_list)
        if reason:
            left.append(_Left(change, reason))
    people = {one.change.person for one in left} - {""}
    others = [change for change in new if change.takes_access and change.person not in people]
    for change in others:
        reason = "raised meanwhile" if change.lowers else _meanwhile(change)
        left.append(_Left(change, reason))
    return left


def _meanwhile(change: Change) -> str:
    """Return how somebody got what a change would take."""
    kind = change.name.partition(" ")[0]
    return MEANWHILE.get(kind, "new meanwhile")


def _what_now(sent: Change, new: Sequence[Change]) -> str:
    """Return what a person is who should be gone or lower, from the new change that they would need."""
    if not (sent.takes_from_person or sent.is_renewal):
        return ""
    for change in new:
        if change.person != sent.person or change.should_gain:
            continue
        if change.takes_from_person:
            return f"{_meanwhile(change)}: {change.name}, {change.notes}"
        if change.action == "differs" or change.mark == "kept":
            return change.notes
    return ""


def _what_they_have(sent: Change, before: AccessList, now: AccessList) -> str:
    """Return what the user still has from whom a change took something, whatever their address is now."""
    if not sent.removes and not sent.lowers:
        return ""
    if before.of(sent.operation) is None:
        return ""
    entry = now.of(sent.operation)
    if entry is None:
        hidden = now.hidden - before.hidden
        return f"may be one of {hidden} whom the service hides now" if hidden > 0 else ""
    if sent.removes:
        return f"is still there: {entry.name}"
    if entry.level is None:
        return f"the service hides the level of {entry.name} now"
    if entry.level > sent.after["level"]:
        return f"still has level {entry.level}: {entry.name}"
    return ""


def _explain(error: errors.WorkspaceNotAppliedError, plan: Plan, left: Sequence[_Left]) -> None:
    """Say in an error and in the plan what is left, if a plan could be made again."""
    if not left:
        return
    names: list[str] = []
    for one in left:
        change = one.change
        answer = "reported success" if change in plan.outcomes else "returned 404"
        if change in plan.changes:
            reason = one.reason or f"the service {answer}, but does not show the change"
            plan.outcomes[change] = ChangeResult("refused", reason)
        name = f"{change.action} {change.name}"
        names.append(f"{name} ({one.reason})" if one.reason else name)
    named = errors.name_first(names, "the plan", separator=", ")
    if not any(one.reason for one in left):
        error.args = (f"Not done: {named}. {error}",)
        return
    error.problem = "joined-meanwhile"
    numbers = counted(len(left), "change is", "changes are")
    why = f"{numbers} not done: somebody kept or got access meanwhile"
    error.args = (f"{why}. Run this again, which plans again. Not done: {named}",)
