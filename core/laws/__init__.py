"""Laws behind exact claims: each calls what trains and grades, and gives a number."""
