"""Webhooks and e-mails about pending requests, and about scheduled runs that did not start.

An operator adds targets in the admin or with `vel notifications`. Each notice
(`agents.kernel.notices`) becomes one row for each target in the same transaction. Workers send the
rows (`jobs.PARTS`) and retry failed deliveries.
"""
