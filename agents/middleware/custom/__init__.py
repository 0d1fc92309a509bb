"""Custom tools and middleware at work: how the engine calls them."""
