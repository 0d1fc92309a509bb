"""Custom tools and middleware: how the engine calls them."""
