"""Tests for your own parts of Vel, such as backends."""
