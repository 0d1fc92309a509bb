"""Webhooks and e-mails about what waits for a person, and about scheduled runs that did not start.

An operator adds targets in the admin or with `vel notifications`. Whatever is announced
(`agents.kernel.notices`) becomes one row for each target in the same transaction. Workers send the
rows (`jobs.PARTS`), and try again what did not arrive.
"""
