"""Verdicts on claims: judged from records, and recomputed to check them."""
