"""The first thing a new user runs: the main job from end to end on a laptop."""
