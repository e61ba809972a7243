"""The circle: train, deploy, measure, attribute, identify, and again, resumed where it stopped."""
