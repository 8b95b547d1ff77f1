"""Other ways to scale invariance, written from their papers, to be trained and tested beside ours.

Each is a module (B, C, H, W) to (B, K), and `RIVALS` is the only list of them. This file imports none: the
names are needed where configurations are read, without torch.
"""

from __future__ import annotations

RIVALS = {
    "gaussder": "scalechannels.rivals.gaussian_derivatives:gaussder",
    "gaussder-max": "scalechannels.rivals.gaussian_derivatives:gaussder_max",
    "gaussder-lse": "scalechannels.rivals.gaussian_derivatives:gaussder_lse",
    "gaussder-3": "scalechannels.rivals.gaussian_derivatives:gaussder_third_order",
    "gaussder-res": "scalechannels.rivals.gaussian_derivatives:gaussder_residual",
    "gaussder-any": "scalechannels.rivals.gaussian_derivatives:gaussder_anywhere",
    "sesn": "scalechannels.rivals.steerable:sesn",
    "sesn-scalar": "scalechannels.rivals.steerable:sesn_scalar",
    "riesz": "scalechannels.rivals.riesz:RieszNetwork",
    "riesz-any": "scalechannels.rivals.riesz:riesz_anywhere",
    "stn": "scalechannels.rivals.transformer:SpatialTransformer",
    "stn-affine": "scalechannels.rivals.transformer:affine_transformer",
}
"""By the name that `network.name` has for it: where the class or function is that builds it."""
