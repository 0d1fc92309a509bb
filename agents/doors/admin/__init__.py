"""The base of the admin: sealed pages of rows, text, forms, and boxes of the first page."""
