"""Drivers: which databases may be reached, and statements with their limits. No rows of Vel."""
