"""Protection of a user's own directory: of the files that programs outside the sandbox run.

Besides source files, a user's directory has git hooks, editor settings and shell start-up files.
`names` lists them. Commands (`mounts`, `blocking`) and file tools (`guard`) cannot change protected
files. `inventory` finds changed files for the report at the end of a run.
"""
