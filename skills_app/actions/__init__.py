"""Change the rows of skills, with checks of the permissions."""
