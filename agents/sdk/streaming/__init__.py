"""Runs for a program: events, modes and output files."""
