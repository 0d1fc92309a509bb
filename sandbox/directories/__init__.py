"""Directory trees with hostile contents: lock, walk, archive and delete them."""
