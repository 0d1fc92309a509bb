from agents.middleware.base import Middleware

MIDDLEWARE: list[Middleware] = []
