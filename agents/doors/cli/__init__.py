"""The base of the commands of `vel`: what the project's commands and those of features share.

The file of a command is imported when the command is called. It holds the options and the code.
What the code needs of Django is imported once Django is set up: see `late_imports`.
"""
