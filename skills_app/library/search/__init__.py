"""Choice of a skill: words, families of words, ranking, and the index that shortlists."""
