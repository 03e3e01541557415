"""Tables as data (`Table`, `Cell`), rendered by one template for each format."""

from eval.tables.render import FORMATS, render, render_all
from eval.tables.table import Block, Cell, Column, Row, Section, Table

__all__ = ["FORMATS", "Block", "Cell", "Column", "Row", "Section", "Table", "render", "render_all"]
