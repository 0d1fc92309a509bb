"""Execution of tool calls: check, request approval, run, and store the results."""
