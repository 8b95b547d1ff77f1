"""What a step changes in its images at random: each module is named after its option.

Each is called with a batch (R, B, …), and with which data set (R, 1) and which of its images (R, B) it has.
"""
