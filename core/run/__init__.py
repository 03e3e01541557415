"""Commands on papers: run an order, reproduce a family, plan, sweep, check and publish."""
