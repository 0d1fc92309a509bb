"""A Django project of another team, in which Vel's apps are installed."""
