"""Agents to begin with: each a file of this directory, in the form of `vel agents export`."""
