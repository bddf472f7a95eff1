"""Plans: graphs compiled to instructions, and the executor that runs them."""
