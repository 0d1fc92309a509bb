"""Every change of the rows of skills, and who may make it."""
