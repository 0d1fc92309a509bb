"""What every run needs, and the protocol by which features plug in. It names no feature."""
