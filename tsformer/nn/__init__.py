"""The parts that models are built of."""
