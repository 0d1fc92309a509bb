"""The shared parts of a process's drivers: leases, the event log, and periodic work."""
