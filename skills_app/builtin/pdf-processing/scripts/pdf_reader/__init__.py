"""Read PDF files with the standard library: objects, text with positions, form fields.

The package reads the output of ordinary programs: cross-reference tables and streams, object
streams, the filters that text passes through, simple and composite fonts with ToUnicode maps or
named encodings. It does not read pictures, so a scan has no text, and it does not decrypt.
"""
