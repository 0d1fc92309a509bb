"""Calls of custom tools and middleware by the engine."""
