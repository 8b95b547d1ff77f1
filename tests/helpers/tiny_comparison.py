"""A comparison small enough to train in a second: two protocols of a few digits, three methods."""

TINY = """
[tuning]
rate = [1e-3, 1e-2]

[protocols.few]
title = "Few digits"
data = { name = "strokes", sizes = [1.0], samples = 40 }
training = { epochs = 1, batch = 20 }
methods = ["fovavg", "cnn"]
reference = "fovavg"
seeds = 2
[[protocols.few.published]]
method = "cnn"
sizes = { "0.5" = 12.5 }
note = "a paper"

[protocols.later]
title = "Data of a later version"
data = { name = "stereo", sizes = [1.0] }
methods = ["cnn"]

[methods.fovavg]
title = "FovAvg"
ours = true
network = { name = "fovavg", low = 1.0, high = 2.0, ratio = 2.0 }

[methods.cnn]
title = "CNN"
network = { name = "cnn" }
training = { rate = 1e-3 }
on.few = { training = { smoothing = 0.1 } }
"""
