"""Sets of skills, unpacked on this host."""
