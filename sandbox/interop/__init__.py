"""Vel's sandbox behind the interfaces of other frameworks. Each needs its own optional extra."""
