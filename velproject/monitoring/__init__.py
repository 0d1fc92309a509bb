"""For operators and balancers: health, metrics, and the status page of the admin."""
