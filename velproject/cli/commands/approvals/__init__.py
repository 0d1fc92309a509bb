"""Requests for approval, standing permissions, and the policy that asks."""
