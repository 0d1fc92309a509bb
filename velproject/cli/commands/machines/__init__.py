"""The commands that start Vel, and those about the machines it runs on."""
