"""Vel's sandbox for other agent frameworks. Each module needs its own optional extra."""
