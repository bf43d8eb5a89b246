"""Servers that take points in: how each is started, asked and stopped."""
