"""What the drivers of one process share: leases, the event log, and periodic work."""
