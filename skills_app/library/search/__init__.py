"""Search skills: split texts into words, relate words, rank skills, and shortlist with an index."""
