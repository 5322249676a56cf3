"""Tables, panels, transforms, splits and windows."""
