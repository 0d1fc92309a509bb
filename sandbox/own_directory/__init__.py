"""Safety of a user's own directory: files that programs outside the sandbox run later.

A user's directory has git hooks, editor settings and shell start-up files among the source files.
`names` lists them. Commands (`mounts`, `blocking`) and file tools (`guard`) cannot change protected
ones. `inventory` finds what has changed, for the report at the end of a run.
"""
