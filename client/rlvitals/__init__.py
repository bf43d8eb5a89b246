"""Vital signs of RL-with-verifiable-rewards training."""
