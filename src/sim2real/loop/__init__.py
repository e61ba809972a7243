"""The circle: train, deploy, measure, attribute, identify, and again, resumable anywhere."""
