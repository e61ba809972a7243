"""Measurements behind the project's claims, each against a peer in the same run."""
