"""What Vel costs beside a bare SDK loop and beside other harnesses: `python -m benchmarks`."""
