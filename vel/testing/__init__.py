"""Test classes that you can use for your own extensions of Vel, such as backends."""
