"""The conformance checks that every plugin passes, ours and everybody's."""
