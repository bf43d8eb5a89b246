"""One file a trainer; import the one you use, e.g. `import rlvitals.trainers.trl`."""
