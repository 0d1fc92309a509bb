"""Gmail and Google Calendar."""

from agents.kernel.settings import FeatureSettings, Secret


class GoogleSettings(FeatureSettings):
    """Google Workspace

    See [other services](../guides/integrations.md).
    """

    GMAIL_URL: str = "https://gmail.googleapis.com/"
    """Address of the Gmail API: the part before `gmail/v1/`."""
    CALENDAR_URL: str = "https://www.googleapis.com/calendar/v3/"
    """Address of the Google Calendar API."""
    GOOGLE_TOKEN_URL: str = "https://oauth2.googleapis.com/token"  # noqa: S105  # an address
    """Address where Vel requests access tokens for both."""
    GOOGLE_AUTH_URL: str = "https://accounts.google.com/o/oauth2/v2/auth"
    """Address of the page where people give their consent."""
    GOOGLE_CLIENT_ID: str = ""
    """The OAuth client with which people connect Google by consent. Empty: they paste a key."""
    GOOGLE_CLIENT_SECRET: Secret = ""
    """The secret of this client."""


SETTINGS = (GoogleSettings,)
