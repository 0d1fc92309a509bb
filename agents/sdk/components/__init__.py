"""Components that programs use with or without an agent."""
