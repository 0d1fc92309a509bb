"""Somebody else's Django project, in which Vel's apps are installed."""
