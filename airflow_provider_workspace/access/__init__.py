"""Who has access to an organization, until when, and who decides."""
