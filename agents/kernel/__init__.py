"""The parts that every run needs, and the protocol of features. It names no feature."""
