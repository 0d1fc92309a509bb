"""Base classes of the doors: REST, pages, the admin, WebSockets and the command line."""
