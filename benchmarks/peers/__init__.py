"""Other harnesses, each in a virtual environment of its own that is made when it is first needed.

An environment of its own because their dependencies are theirs: one of them even installs a
package that is called `agents`, as one of Vel's is.
"""
