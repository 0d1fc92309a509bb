"""Operations: the service of the operating system, backups, moves of the database and upgrades."""
