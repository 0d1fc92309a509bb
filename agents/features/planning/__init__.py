"""Planning: a to-do list that the agent writes and people can watch."""
