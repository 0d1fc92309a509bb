"""WebSocket consumers."""
