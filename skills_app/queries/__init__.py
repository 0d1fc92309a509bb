"""Read access to the rows of skills, for people and for runs."""
