"""Runs: giving an agent a task, following and steering runs, and what they used."""
