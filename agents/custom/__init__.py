"""What a developer writes for an agent: tools from functions, and middleware. Needs no Django."""
