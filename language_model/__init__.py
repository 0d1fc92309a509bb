"""A small language model (MiniLM) on numpy, for the scanner of texts and the search of skills."""
