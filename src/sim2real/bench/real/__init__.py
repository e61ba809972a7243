"""Recordings of real robots: how each is read and scored, and the bench over all of them."""
