"""The parts of an agent that developers write: tools from functions, and middleware. No Django."""
