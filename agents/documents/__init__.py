"""What people upload: which files are taken, and how they are read. Knows no rows."""
