"""The base of the commands of `vel`: the commands of the project and of features use it.

The file of a command is imported when the command is called. It holds the options and the code.
Modules that need Django are imported after its set-up: see `late_imports`.
"""
