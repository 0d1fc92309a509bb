"""Upgrades: what an operator has to know before a new version starts."""
