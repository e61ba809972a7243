"""Identification: from real logs to a twin that knows what it does not know."""
