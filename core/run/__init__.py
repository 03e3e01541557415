"""Orders: run a paper, reproduce a family, plan, sweep, check and publish."""
