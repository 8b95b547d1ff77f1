"""Which room may know which, and that nobody knows itself by a detour; imports inside functions count too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "scalechannels"
CORE = (
    *(
        "scales",
        "scale_space",
        "sampling",
        "pooling",
        "network",
        "everywhere",
        "plain",
        "constructors",
        "dense",
        "selection",
    ),
)
METERS = ("invariance",)
# Each room and what it may import besides itself. `core` is the way of an image, flat at the top.
ALLOWED: dict[str, set[str]] = {
    "files": set(),
    "core": {"backbones", "saving"},
    "backbones": {"core"},
    "saving": {"core", "backbones", "data", "files", "scalechannels"},
    "meters": {"core", "backbones"},
    "detection": {"core", "backbones", "saving", "data", "files"},
    "data": {"core", "files"},
    "rivals": {"core", "backbones"},
    "training": {"core", "backbones", "saving", "data", "rivals", "files", "scalechannels"},
    "report": {"core", "backbones", "saving", "data", "detection", "training", "files"},
    "paper": {"core", "backbones", "saving", "data", "training", "report", "files"},
    "compare": {"core", "data", "training", "report", "paper", "files"},
    "demo": {"core", "backbones", "saving", "data", "detection", "files"},
    "cli": {"commands", "scalechannels"},
    "commands": {
        *("core", "backbones", "saving", "data", "detection", "training", "report", "paper", "demo"),
        *("files", "cli", "meters", "compare"),
    },
    "predictor": {"core", "saving", "data"},
    "estimator": {"core", "saving", "data", "training", "report"},
    "scalechannels": {"core", "backbones", "saving", "detection", "meters", "predictor", "estimator"},
}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room(module: str) -> str:
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return "core" if name in CORE else "meters" if name in METERS else name


def imports(module: str) -> Iterator[str]:
    """Every module of ours that a module imports, at its top or in a function, but not for types alone."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("scalechannels"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scalechannels"):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in MODULES else str(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # loaded by its name
            name = node.value.partition(":")[0]
            if name.startswith("scalechannels.") and name in MODULES:
                yield name


@pytest.mark.parametrize("module", MODULES)
def test_a_room_knows_only_what_it_may(module: str) -> None:
    own = room(module)
    assert own in ALLOWED, f"{module} is in no room: say in ALLOWED what it may import"
    for other in imports(module):
        assert other in MODULES, f"{module} imports {other}, which does not exist"
        allowed = room(other) in ALLOWED[own] | {own}
        assert allowed, f"{module} imports {other}: {own} may not know {room(other)}"


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("scalechannels.commands.")])
def test_no_command_imports_another(module: str) -> None:
    others = [name for name in imports(module) if room(name) == "commands"]
    assert not others, f"{module} imports {others}"


def test_no_module_imports_itself_by_a_detour() -> None:
    """Commands are loaded by name from `cli`, whose options they import: that is the one way back."""
    edges = {
        name: {other for other in imports(name) if other != name and not (name.endswith(".cli"))}
        for name in MODULES
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in sorted(edges[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_the_top_and_training_stay_small() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 16
    assert len(list((PACKAGE / "training").glob("*.py"))) <= 16


def test_networks_are_asked_how_they_look_not_what_they_are() -> None:
    """`isinstance` on network classes stays rare: a third network would have to be told to every one."""
    names = {"ScaleChannelNetwork", "PlainNetwork", "Network", "DenseNetwork"}
    found = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and names & {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
    ]
    assert len(found) < 15, found
