"""Token scopes. A session has all scopes."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.models import ApiToken, TokenScope
from agents.services.errors import NotAllowed

SESSION_ONLY = "session"
"""In a view's `scopes`: only a session may use the method, for example to create tokens."""


class HasScope(BasePermission):
    """Requires a token to have the scope for the method in the view's `scopes`.

    Methods without an entry are closed to tokens.
    """

    code = "insufficient_scope"

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = str(request.method)
        if request.auth is None or method not in view.allowed_methods:
            return True  # a session, or a method that gets a 405
        needed = getattr(view, "scopes", {}).get("GET" if method == "HEAD" else method)
        if needed == SESSION_ONLY:
            self.message = "No token does this: sign in, or ask whoever runs this server."
            return False
        has = request.auth.scopes if isinstance(request.auth, ApiToken) else []
        self.message = (
            f"This needs a token with the scope '{needed}'; "
            f"this one has {', '.join(has) or 'none'}: make another in your profile."
        )
        return needed in has


def require_scope(request: Request, scope: TokenScope, *, beside: TokenScope) -> None:
    """Raise `NotAllowed` for a token without `scope`, an additional scope that the view needs."""
    if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
        raise NotAllowed(
            f"This needs a token with the scope {scope.value!r} beside {beside.value!r}.",
            code="insufficient_scope",
        )
