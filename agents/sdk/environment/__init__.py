"""The Django project, the database and the engine of a program."""
