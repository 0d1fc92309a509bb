"""Tests for the parts that programs give to Vel."""
