"""What every benchmark needs: CPU time of process trees, and tables. Standard library only."""
