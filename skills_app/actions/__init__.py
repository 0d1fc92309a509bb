"""All changes to the rows of skills, and the permissions for them."""
