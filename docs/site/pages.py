"""What the site has beyond the pages of docs/: the README, the reference, and files that are linked.

The Markdown in docs/ is written for a repository's host, where links lead from file to file. Here they are
turned to the pages of the site; what is no page, such as a test that is named, comes along as a text file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify
from reference import REFERENCE, reference  # mkdocs imports this file beside its neighbours

import scalechannels

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Markdown beside docs/, and the page that it becomes."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(?=[)#])")


def repository_path(page: str) -> str:
    """Where the Markdown of a page lies in the repository."""
    return next((path for path, made in FROM_ROOT.items() if made == page), f"docs/{page}")


def place_in_site(path: str) -> str:
    """Where a file of the repository is found from the site's root."""
    if path in FROM_ROOT:
        return FROM_ROOT[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}.txt"


def linked(markdown: str, path: str) -> list[str]:
    """The files of the repository that the Markdown at `path` links to."""
    return [posixpath.normpath(posixpath.join(posixpath.dirname(path), to)) for to in LINK.findall(markdown)]


def on_config(config: MkDocsConfig) -> None:
    """Anchors are made as repository hosts make them, so that one link serves both."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    homes = [home for _, modules in REFERENCE.values() for home in modules.split()]
    if sorted(homes) != sorted(scalechannels._HOMES):
        odd = sorted(set(homes) ^ set(scalechannels._HOMES))
        raise PluginError(
            f"REFERENCE in docs/site/reference.py must name each module of _HOMES once; see {odd}"
        )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {made: (ROOT / path).read_text(encoding="utf-8") for path, made in FROM_ROOT.items()}
    pages |= {f"reference/{page}.md": reference(page) for page in REFERENCE}
    for page, markdown in pages.items():
        files.append(File.generated(config, page, content=markdown))
    wanted = {
        path
        for file in files.documentation_pages()
        for path in linked(file.content_string, repository_path(file.src_uri))
        if place_in_site(path).startswith("files/")
    }
    for path in sorted(wanted):
        files.append(File.generated(config, place_in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = page.file.src_uri
    folder = posixpath.dirname(repository_path(here))

    def turned(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        return posixpath.relpath(place_in_site(path), posixpath.dirname(here) or ".")

    return LINK.sub(turned, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Without a script of another host: a page opened as a file then shows no search, a served one does."""
    return output.replace('<script src="https://unpkg.com/iframe-worker/shim"></script>', "")
