"""What a gap is made of: shares of the error and of the lost success, by dimension."""
