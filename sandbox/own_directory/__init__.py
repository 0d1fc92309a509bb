"""Safety of a user's own directory: files that programs outside the sandbox run later.

Git hooks, editor settings and shell start-up files lie beside the files that an agent is to change.
`names` lists them. Commands (`mounts`, `blocking`) and file tools (`guard`) cannot change protected
ones. `inventory` finds what has changed, for the report at the end of a run.
"""
