"""The `vel` command.

The modules here declare commands and import nothing but click, so that `vel --help` and a
mistyped flag answer at once. What a command does is in `velproject.cli.actions`, which is
imported once Django is set up.
"""
