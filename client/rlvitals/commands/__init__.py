"""What the `rlvitals` command does, one file a subject."""
