"""What people look at: plots, videos and tables."""
