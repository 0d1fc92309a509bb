"""Monitoring for operators and load balancers: health, metrics and the admin's status page."""
