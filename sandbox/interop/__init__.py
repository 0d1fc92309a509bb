"""Vel's sandbox with the interfaces of other frameworks. Each needs its own optional extra."""
