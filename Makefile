# `make test` and `make quickstart` are all a fresh machine needs: each sets up .venv first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_ALL := $(VENV)/.ready-all
READY_DOCS := $(VENV)/.ready-docs
READY_WEB := $(VENV)/.ready-web

.PHONY: test test-all quickstart lint bench docs demo-site clean

# Several processes of one thread each: on two cores, half of the time that one process takes.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" --numprocesses auto --maxprocesses 4 --dist loadfile

test-all: test $(READY_ALL) $(READY_DOCS) $(READY_WEB)
	$(BIN)/python -m pytest -m "slow"

quickstart: $(READY)
	$(BIN)/scalechannels quickstart

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.forward

# The documentation as a site, in site/: open site/index.html. Needs no network once its packages are there.
docs: $(READY_DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The same with the demo in site/demo, for a web server.
demo-site: docs $(READY_WEB)
	$(BIN)/scalechannels demo --static site/demo

# torch comes first and pinned: an unpinned one may bring gigabytes of CUDA libraries.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

# What only the slow tests need: Ray, TensorBoard, Triton to run the GPU kernels without a GPU, a kernel that
# runs notebooks, Lightning, what makes a wheel, and a browser, which comes from the system's packages.
$(READY_ALL): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,ray,log,kernels,browser,notebook,lightning,release]"
	command -v chromium || command -v chromium-browser || command -v google-chrome || test -n "$(CHROMIUM)" \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y chromium; } \
		|| echo "No Chromium: install it, or name one by CHROMIUM=/path, or the demo's browser test fails"
	touch $@

$(READY_DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,docs]"
	touch $@

# What runs networks in a browser, in the cache. The tests that need it say so where there is none.
$(READY_WEB): $(READY) scalechannels/demo/without_server.py
	if command -v npm; then $(BIN)/python -m scalechannels.demo.without_server; \
		else echo "No npm, which fetches onnxruntime-web: tests of networks in a browser are skipped"; fi
	touch $@

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .mypy_cache .hypothesis
