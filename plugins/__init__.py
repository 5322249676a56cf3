"""The plugins that come with tsformer, one file each. Plugins never import each other."""
