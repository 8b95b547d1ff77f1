"""A rented machine has PyTorch and NumPy, and little else: what the benchmarks that run there do without."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor


def load_file(path: Path | str) -> dict[str, Tensor]:
    """The tensors of a safetensors file: the length of its header, the header as JSON, then their bytes."""
    content = Path(path).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    kinds = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "I64": torch.int64}
    tensors = {}
    for name, about in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, last = (begin + offset for offset in about["data_offsets"])
            flat = torch.frombuffer(bytearray(content[first:last]), dtype=kinds[about["dtype"]])
            tensors[name] = flat.view(about["shape"])
    return tensors


class Opened:
    """As safetensors opens a file, as far as the library asks it: names, shapes and types."""

    def __init__(self, path: Path | str, _: str) -> None:
        self.tensors = load_file(path)
        content = Path(path).read_bytes()
        self.about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def keys(self) -> list[str]:
        return list(self.tensors)

    def get_slice(self, name: str) -> Any:
        shape, kind = list(self.tensors[name].shape), self.about[name]["dtype"]
        return SimpleNamespace(get_shape=lambda: shape, get_dtype=lambda: kind)


def stand_in() -> None:
    """Empty modules for packages that are missing and that training imports, but need not use."""

    class Mixin:
        def __init_subclass__(cls, **_: Any) -> None:
            super().__init_subclass__()

        def save_pretrained(self, *_: Any, **__: Any) -> None:
            """There is nothing to save with."""

    contents: dict[str, dict[str, Any]] = {
        "huggingface_hub": {"PyTorchModelHubMixin": Mixin},
        "safetensors": {"SafetensorError": ValueError, "safe_open": Opened},
        "safetensors.torch": {"load_file": load_file},
        "PIL": {f"Image{part}": ModuleType(f"PIL.Image{part}") for part in ("", "Cms", "Draw", "Font", "Ops")}
        | {"UnidentifiedImageError": ValueError},
    }
    lacking = {name for name in contents if "." not in name and importlib.util.find_spec(name) is None}
    for name, values in contents.items():
        if name.partition(".")[0] in lacking:
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(values, __spec__=ModuleSpec(name, None))  # others may ask for it
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, sys.modules[name])
