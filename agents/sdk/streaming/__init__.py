"""Runs as a program sees them: events, modes and output files."""
