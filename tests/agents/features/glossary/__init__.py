"""A glossary: agents look up the words of a team, which people edit in the admin."""
