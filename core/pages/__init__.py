"""Pages and tables, rendered from records."""
