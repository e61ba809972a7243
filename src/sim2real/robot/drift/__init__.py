"""Has the robot moved away from its twin, when, and in which parameters?"""
