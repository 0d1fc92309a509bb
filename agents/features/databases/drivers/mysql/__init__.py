"""MySQL and MariaDB: reading."""
