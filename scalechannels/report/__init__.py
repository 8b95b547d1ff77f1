"""Reports: self-contained pages and the pictures in them."""
