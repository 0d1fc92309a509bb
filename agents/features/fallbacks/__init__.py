"""Continue a run with another model if the agent's model is unavailable.

It plugs in the middleware `fallbacks`, for agents that have fallback models.
"""
