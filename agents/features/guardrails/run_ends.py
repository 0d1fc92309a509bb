"""Receivers of notifications about the ends of runs."""

from agents.features.guardrails.lifecycle import LifecycleEnds

END_LISTENERS = (LifecycleEnds(),)
