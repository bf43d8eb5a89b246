"""Hold the pages, one file each."""
