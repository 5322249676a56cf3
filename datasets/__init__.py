"""Small data sets; sources and licences are in README.md."""
