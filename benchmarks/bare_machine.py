"""A rented machine has PyTorch and NumPy, and little else: what the benchmarks that run there do without."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def stand_in() -> None:
    """Empty modules for packages that are missing and that training imports, but need not use."""

    class Mixin:
        def __init_subclass__(cls, **_: Any) -> None:
            super().__init_subclass__()

        def save_pretrained(self, *_: Any, **__: Any) -> None:
            """There is nothing to save with."""

    contents: dict[str, dict[str, Any]] = {
        "huggingface_hub": {"PyTorchModelHubMixin": Mixin},
        "safetensors": {"SafetensorError": ValueError},
        "safetensors.torch": {},
        "PIL": {name: ModuleType(f"PIL.{name}") for name in ("Image", "ImageCms", "ImageOps")}
        | {"UnidentifiedImageError": ValueError},
    }
    lacking = {name for name in contents if "." not in name and importlib.util.find_spec(name) is None}
    for name, values in contents.items():
        if name.partition(".")[0] in lacking:
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(values, __spec__=ModuleSpec(name, None))  # others may ask for it
