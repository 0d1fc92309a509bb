"""Templates of new agents: one file each, in the format of `vel agents export`."""
