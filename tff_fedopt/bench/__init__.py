"""What the bench command measures: rounds and steps, side by side."""
