"""What a person, or a run, sees of the rows of skills."""
