# make demo   a Kronecker graph of scale 18, BFS on it, its validation, its table and its picture
# make test   every test that needs no GPU
# make test-fast   some tests of every part, within a minute on two processors
# make soak   a million random cases against other libraries, an hour or so; SOAK="--minutes 10" and so on
# make docs   the examples in the pages, and what they claim
# make site   the pages and the reference as a site, in build/site; a broken link or a missing docstring fails
# All make the virtual environment .venv first and are quick when it is up to date.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SCALE  ?= 18
CUDA_SOURCES = $$(find spgraph semirings algorithms -name '*.cu' -o -name '*.cuh')

.PHONY: demo test test-fast coverage docs site soak lint format typecheck package clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/spgraph generate kronecker $(SCALE) --output demo-graph.npz
	$(BIN)/spgraph bfs demo-graph.npz --validate --trace --plot demo-frontier.png

# a file a process: most of the time goes into compiling kernels, which the tests of a file share
PYTEST = SPGRAPH_SHIM_CACHE=$${SPGRAPH_SHIM_CACHE:-$(abspath $(VENV))/shim} $(BIN)/pytest -n auto --dist loadfile

test: $(VENV)/.dev
	$(PYTEST)

# which lines of Python the tests run; kernels are compiled and do not count, and without a GPU few of
# those under spgraph/backends/cuda run
coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report term --cov-report xml

docs: $(VENV)/.dev
	$(PYTEST) docs README.md tests/docs tests/test_project.py

# In the folder of its version, beside which stands the list that the pages offer. Notebooks run:
# they are kept without outputs.
site: $(VENV)/.site
	version=$$($(BIN)/python -c 'import spgraph; print(spgraph.__version__)') && \
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env \
	    --doctree-dir build/doctrees --conf-dir docs/site . build/site/$$version && \
	cp docs/site/versions.json build/site && \
	echo "<meta http-equiv=refresh content='0; url=$$version/docs/index.html'>" > build/site/index.html

test-fast: $(VENV)/.dev
	$(PYTEST) @tests/fast.txt

soak: $(VENV)/.dev
	$(BIN)/python tests/soak --output benchmarks/results/soak_$$(date +%F).json $(SOAK)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CUDA_SOURCES)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CUDA_SOURCES)
	$(BIN)/nbstripout notebooks/*.ipynb

typecheck: $(VENV)/.dev
	$(BIN)/mypy

package: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage coverage.xml demo-graph.npz demo-frontier.png

# The installs are editable, so that a stamp goes stale only with pyproject.toml, never with the sources.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "spgraph needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1): make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.demo

$(VENV)/.site: pyproject.toml | $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
