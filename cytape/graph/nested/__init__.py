"""Plans of bodies inside plans: branches, loops, checkpointed loops."""
