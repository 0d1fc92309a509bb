"""Skills: packages of instructions that agents load.

People import, review and compare them on pages, in the admin, through the REST API and with `vel
skills`. A run starts with a set of versions, which never change. The feature adds tools, a segment
of the prompt, events, and its part of each door. `library` reads, checks and searches packages, and
needs no rows.
"""
