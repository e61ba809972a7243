"""Identification against known truths and against its peers."""
