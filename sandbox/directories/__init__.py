"""Trees of files that hostile code has written: lock, walk, archive and delete them."""
