"""Logging clients, one a process; they run under any interpreter and import only what is asked."""
