"""The browser that is installed, for the tests that drive one."""

import os
import shutil

import pytest


def chromium() -> str:
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    pytest.fail("no Chromium: install Debian's package chromium, or name one by CHROMIUM=/path")
