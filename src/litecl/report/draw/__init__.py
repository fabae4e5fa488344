"""Draws data as SVG. Colours are CSS classes of the page; nothing here measures."""
