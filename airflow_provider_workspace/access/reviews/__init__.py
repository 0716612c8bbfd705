"""Access reviews: population, question, decisions, outcome, evidence."""
