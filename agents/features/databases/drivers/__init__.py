"""Drivers: allowed databases, and statements with their limits. They do not use Vel's models."""
