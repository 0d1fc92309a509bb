"""The web server: its limits, its database connections and its response headers."""
