"""Make tool calls: check, ask, run, and store the results."""
