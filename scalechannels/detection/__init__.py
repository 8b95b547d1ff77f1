"""Objects of any size anywhere in an image: peaks over place and scale, boxes, and how detectors learn."""
