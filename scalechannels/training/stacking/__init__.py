"""Many small networks trained as one on a GPU. A closed room: `stacked` is its door."""
