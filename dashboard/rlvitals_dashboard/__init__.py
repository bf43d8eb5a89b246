"""Show the vital signs of training runs live."""
