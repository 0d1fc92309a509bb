"""The skills of one run, from its beginning to its end."""
