"""Skills: packages of instructions that agents load.

People import, review and compare skills on pages, in the admin, through the REST API and with `vel
skills`. A run pins a set of versions at its start, and these never change. This app adds tools, a
segment of the prompt, events, pages, endpoints and commands. `library` reads, checks and searches
packages without the database.
"""
