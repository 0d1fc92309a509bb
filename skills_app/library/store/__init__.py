"""Unpack sets of skills on this host."""
