"""Tests of the files in deploy/: the image, the compose file and the chart."""
