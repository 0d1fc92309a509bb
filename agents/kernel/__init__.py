"""The parts that every run needs, and the protocol of features. The kernel names no feature."""
