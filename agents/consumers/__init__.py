"""WebSocket doors."""
