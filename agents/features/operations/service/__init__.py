"""The service of systemd, and the support bundle."""
