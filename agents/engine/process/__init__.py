"""Parts that all drivers of a process share: leases, streamed text and periodic work."""
