"""The code of the commands of `vel`."""
