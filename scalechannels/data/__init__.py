"""The data: fetched, generated or drawn. Every concept has a module of its own; import from there."""
