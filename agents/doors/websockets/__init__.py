"""The base of the WebSockets: consumers, credentials, origins and frames."""
