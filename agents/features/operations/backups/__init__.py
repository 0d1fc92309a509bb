"""`vel backup` and `vel restore`: consistent backups of the database and the files.

`create`, `verify`, `prune` and `restore` have the order of the work. A `repository` keeps
`objects` by their SHA-256, and one `manifest` for each backup. `sqlite` and `postgresql` copy
databases. `source_tree` reads and `scratch_tree` writes files without following links, and `review`
makes a restored database safe to start.
"""
