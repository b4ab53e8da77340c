"""Server-side apply: field paths and sets, typed values, merge and ownership."""
