"""The skills of one run, from its start to its end."""
