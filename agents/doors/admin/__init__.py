"""The base of the admin: read-only pages of rows, text, forms, and boxes of the home page."""
