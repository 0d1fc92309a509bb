"""Compare the costs of Vel, a bare SDK loop and other harnesses: `python -m benchmarks`."""
