"""The tools of Gmail and Google Calendar."""

from agents.features.google_workspace.middleware.calendar import CalendarMiddleware
from agents.features.google_workspace.middleware.gmail import GmailMiddleware

MIDDLEWARE = (GmailMiddleware(), CalendarMiddleware())
