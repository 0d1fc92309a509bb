"""What the doors share: bases of REST, pages, the admin, WebSockets and the command line."""
