"""What LeRobot looks like to a guarding process: one arm, whose bus writes down all it is told."""
