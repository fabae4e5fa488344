"""Pictures of numbers as SVG, by functions of data. Colours are classes of the page's style; nothing here measures."""
