"""Agents, runs, the engine that drives them, and every door they are reached through."""
