"""The sandbox on macOS: `sandbox-exec` with a Seatbelt profile."""
