"""The sandbox of macOS: `sandbox-exec` with a Seatbelt profile."""
