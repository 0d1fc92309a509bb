"""Read the rows of skills for people and for runs."""
