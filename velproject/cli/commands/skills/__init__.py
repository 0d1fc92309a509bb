"""Skills: packages of instructions that teach agents."""
