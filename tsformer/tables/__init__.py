"""Tables as people have them: from bytes to columns whose meaning is known."""
