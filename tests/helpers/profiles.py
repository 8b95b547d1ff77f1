"""ICC profiles made from nothing: colours that are not sRGB, in the fewest bytes that littleCMS takes."""

import itertools
import struct

import numpy as np

ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
"""XYZ of Adobe RGB's red, green and blue, brought to D50."""
SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410))
WHITE = (0.9642, 1.0, 0.8249)  # D50


def rgb_profile(gamma: float = 2.2, primaries: tuple[tuple[float, ...], ...] = ADOBE) -> bytes:
    """A display with these primaries and this gamma: Adobe RGB unless another is asked for."""
    colours = {
        name: _xyz(*primary) for name, primary in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)
    }
    curves = {name: _curve(gamma) for name in (b"rTRC", b"gTRC", b"bTRC")}
    return _profile(b"mntr", b"RGB ", b"XYZ ", {**colours, **curves})


def near_srgb_profile() -> bytes:
    """A display that is sRGB but for what its maker rounded: colours move by one or two of 255."""
    shown = np.linspace(0, 1, 256)
    light = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.44)
    table = struct.pack(">I256H", 256, *(round(65535 * value) for value in light))
    colours = {name: _xyz(*primary) for name, primary in zip((b"rXYZ", b"gXYZ", b"bXYZ"), SRGB, strict=True)}
    curves = dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), b"curv\0\0\0\0" + table)
    return _profile(b"mntr", b"RGB ", b"XYZ ", {**colours, **curves})


def grey_profile(gamma: float = 1.0) -> bytes:
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"kTRC": _curve(gamma)})


def cmyk_profile() -> bytes:
    """Inks that are not what their names say: full cyan is printed as a mid grey; the others are as dark."""
    tables = bytes(range(256))
    # Lab in 8 bits, a and b at 128: each ink takes half of the lightness that is left.
    nodes = b"".join(
        bytes((round(255 * 0.5 ** sum(inks)), 128, 128)) for inks in itertools.product((0, 1), repeat=4)
    )
    matrix = struct.pack(">9i", *(65536 * np.eye(3, dtype=int)).reshape(-1).tolist())
    table = b"mft1\0\0\0\0" + bytes((4, 3, 2, 0)) + matrix + tables * 4 + nodes + tables * 3
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"A2B0": table})


def _profile(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    tags = {b"wtpt": _xyz(*WHITE), **tags}
    contents, table, at = b"", b"", 128 + 4 + 12 * len(tags)
    for name, content in tags.items():
        content = content.ljust(-(-len(content) // 4) * 4, b"\0")
        table += name + struct.pack(">II", at + len(contents), len(content))
        contents += content
    head = struct.pack(">I4sI4s4s4s", at + len(contents), b"none", 0x02100000, kind, space, connection)
    head += bytes(12) + b"acsp" + bytes(28) + struct.pack(">3i", *(round(65536 * part) for part in WHITE))
    head = head.ljust(128, b"\0")
    return head + struct.pack(">I", len(tags)) + table + contents


def _xyz(*parts: float) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * part) for part in parts))


def _curve(gamma: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(256 * gamma))
