"""Which test images a network got wrong, as a short text for a result file.

Law: what `unpack_errors` reads is what `pack_errors` was given; changed or truncated text is an error,
for the compressed bits carry a checksum. Of 10,000 images, a text has some 260 characters at 1 % errors and
never more than 1,700.
Limit: the images have no names and are counted by eights, so texts can be compared only where the test set is
the same, in the same order. Other builds of zlib may write the same errors as another text.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # results are read where torch is not imported
    from torch import Tensor


def pack_errors(wrong: Tensor) -> str:
    """The text of a test set's errors, True where an image was classified wrongly.

    wrong   bool (N,), on any device
    """
    if wrong.dim() != 1 or str(wrong.dtype) != "torch.bool":
        raise ValueError(
            f"errors are one bool for each image, got {wrong.dtype} of shape {tuple(wrong.shape)}; "
            "give predicted != labels"
        )
    bits = np.packbits(wrong.cpu().numpy())  # (N/8,), the last byte filled up with zeros
    return base64.b64encode(zlib.compress(bits.tobytes(), 9)).decode("ascii")


def unpack_errors(text: str, images: int) -> np.ndarray:
    """The errors of a text that `pack_errors` made of so many images: bool (images,)."""
    if images < 0:
        raise ValueError(f"the number of images is zero or more, got {images}")
    length = -(-images // 8)
    try:
        stream = zlib.decompressobj()
        # One byte more than expected is enough to know: damaged text must not fill the memory.
        packed = stream.decompress(base64.b64decode(text, validate=True), length + 1)
    except (binascii.Error, zlib.error, ValueError, TypeError) as error:
        raise ValueError(f"errors are damaged, not what pack_errors writes: {error}") from error
    if not stream.eof and len(packed) <= length:
        raise ValueError("errors are damaged: the text is cut off")
    if stream.unused_data:
        raise ValueError(f"errors are damaged: {len(stream.unused_data)} bytes follow their end")
    bits = np.unpackbits(np.frombuffer(packed, np.uint8))
    if len(packed) != length or bits[images:].any():
        raise ValueError(f"these errors are not for {images} images")
    return bits[:images].astype(bool)
