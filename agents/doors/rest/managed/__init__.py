"""Endpoints for the objects that people manage in the admin: see `objects.Managed`."""
