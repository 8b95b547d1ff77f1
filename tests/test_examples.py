"""Every public name has an example in its docstring, and the examples say what the code does."""

import doctest
import inspect
from collections.abc import Iterator

import pytest
import torch

import scalechannels

NAMES = [name for name in scalechannels.__all__ if name != "__version__"]


def examples(name: str) -> Iterator[tuple[str, doctest.DocTest]]:
    """The examples of a public name and, where it is a class, of its public methods, inherited ones too."""
    thing = getattr(scalechannels, name)
    parts = {name: thing}
    for method, _ in inspect.getmembers(thing, callable) if inspect.isclass(thing) else ():
        if method == "__call__" or not method.startswith("_"):
            parts[f"{name}.{method}"] = getattr(thing, method)
    parser = doctest.DocTestParser()
    for part, found in parts.items():
        text = inspect.getdoc(found) or ""
        if getattr(found, "__module__", "").startswith("scalechannels.") and "\nExample:\n" in text:
            yield part, parser.get_doctest(text, {}, part, None, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("libraries", "one_thread")
def test_the_examples_of_a_public_name_say_what_it_does(name: str):
    torch.manual_seed(0)
    found = dict(examples(name))
    assert name in found, f"the docstring of {name} has no example"
    said: list[str] = []
    for example in found.values():
        assert example.examples, f"{example.name} has an example without code"
        doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
