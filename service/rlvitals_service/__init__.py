"""Receive, judge and serve the vital signs of training runs."""
