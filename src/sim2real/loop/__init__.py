"""The circle: train, deploy, measure, attribute, identify, and again; it resumes where it stopped."""
