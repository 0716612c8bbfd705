// Class names by which Airflow finds the tasks of this package. Subclasses have other names, and are not
// found.

export const INVITES = "WorkspaceCreateInvitesOperator";
export const ORGANIZATION = "WorkspaceApplyOrganizationOperator";
const SYNC = "WorkspaceSyncMembersOperator";
// Operators that invite: one that does nothing else, and others, which may have nobody to invite.
export const CAMPAIGNS = [INVITES, SYNC, ORGANIZATION];
export const SWEEP_OPERATOR = "WorkspaceSweepOperator";
export const SENSORS = [
  "WorkspaceBatchExportCompleteSensor", "WorkspaceDomainVerifiedSensor", "WorkspaceInvitesSettledSensor",
  "WorkspaceMembersJoinedSensor", "WorkspaceProjectReceivingEventsSensor", "WorkspaceProjectOnboardedSensor",
];

const CLEAR = "Correct the cause, then clear the task.";
const CLEAR_INVITES = "Correct the cause, then clear the task: it sends only what is missing.";
const CLEAR_SYNC = "Correct the cause, then clear the task: it plans anew.";
const CLEAR_OR_ASK = "Correct the cause, then clear the task, or ask anew.";
const CLEAR_OR_WAIT = "Correct the cause, then clear the task, or wait for the next sweep.";
// Operators whose failure somebody must know of: what people call them, and what to do.
/** @type {Record<string, {kind: string, cure: string}>} */
export const MUST_SUCCEED = {
  [INVITES]: { kind: "bulk invite", cure: CLEAR_INVITES },
  [SYNC]: { kind: "member sync", cure: CLEAR_SYNC },
  WorkspacePlanOrganizationOperator: { kind: "organization file", cure: CLEAR },
  [ORGANIZATION]: { kind: "organization file", cure: CLEAR },
  WorkspaceReadPopulationOperator: { kind: "access review", cure: CLEAR },
  WorkspaceDecideAccessOperator: { kind: "access review", cure: CLEAR },
  WorkspaceApplyDecisionsOperator: { kind: "access review", cure: CLEAR },
  WorkspaceCloseReviewOperator: { kind: "access review", cure: CLEAR },
  WorkspaceCatchUpOperator: { kind: "catch-up", cure: CLEAR },
  WorkspaceLiftDecisionOperator: { kind: "lift of a decision", cure: CLEAR_OR_ASK },
  WorkspaceGrantAccessOperator: { kind: "grant", cure: CLEAR_OR_ASK },
  WorkspaceEndAccessOperator: { kind: "early end", cure: CLEAR },
  [SWEEP_OPERATOR]: { kind: "sweep", cure: CLEAR_OR_WAIT },
};
