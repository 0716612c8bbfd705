"""Files that tasks read and write: rosters, organization files, reports, the evidence of a review."""
