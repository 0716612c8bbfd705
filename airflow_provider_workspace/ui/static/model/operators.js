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

// Operators whose failure somebody must know of, and what people call them. The message of a failure, and the section
// about its problem, say what to do.
/** @type {Record<string, string>} */
export const MUST_SUCCEED = {
  [INVITES]: "bulk invite",
  [SYNC]: "member sync",
  WorkspacePlanOrganizationOperator: "organization file",
  [ORGANIZATION]: "organization file",
  WorkspaceReadPopulationOperator: "access review",
  WorkspaceDecideAccessOperator: "access review",
  WorkspaceApplyDecisionsOperator: "access review",
  WorkspaceCloseReviewOperator: "access review",
  WorkspaceCatchUpOperator: "catch-up",
  WorkspaceLiftDecisionOperator: "lift of a decision",
  WorkspaceGrantAccessOperator: "grant",
  WorkspaceEndAccessOperator: "early end",
  [SWEEP_OPERATOR]: "sweep",
};
