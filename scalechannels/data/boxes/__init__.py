"""A user's labelled boxes: COCO, YOLO, Pascal VOC and CSV files become one checked set of images."""
