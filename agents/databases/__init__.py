"""Databases that agents may read: connections, limits and inspection. No rows of Vel's in it."""
