"""What a file holds, what is wrong with it, and the line that fits a model to it."""
