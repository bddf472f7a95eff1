# Every target sets up what it needs in .venv, from Python >= 3.11 and a C compiler.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
CYTHON_SOURCES := $(shell find cytape pxd -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
INSTALLED := $(VENV)/cytape-installed
TOOLS := $(VENV)/tools-installed
DOCS := $(VENV)/docs-extra
TYPES := $(VENV)/types-extra
BUILT := $(VENV)/cytape-built
EXAMPLES := $(VENV)/examples-extra
HINTS := build/lint/no-hints
TRACED := build/coverage
PEERS := .venv-peers
ON_ALL_CORES := -n auto --dist worksteal
# Without files of bytecode each process of the tests compiles the package, and pytest all tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help build demo demo-memory test test-all mutants random-programs mutated-files bench bench-smoke bench-peers \
    bench-ops bench-scipy bench-dependents bench-instructions lint lint-ruff lint-mypy lint-pyright lint-cython \
    coverage docs docs-test clean

help:  ## show the targets
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ { printf "%-18s %s\n", $$1, $$2 }' Makefile

build: $(BUILT) $(EXAMPLES)  ## compile the extension modules in place

demo:  ## train a network on handwritten digits
	$(MAKE) -j 2 build  # pip installs what examples import beside the compiler
	$(RUN) examples/digits.py

demo-memory: build  ## train one whose gradient does not fit in memory, on Linux
	$(RUN) examples/deep_digits.py

test: $(BUILT) $(TOOLS)  ## run the tests and the doctests, on all cores
	$(RUN) -m pytest $(ON_ALL_CORES)

test-all: $(BUILT) $(TOOLS)  ## the same with the whole of the tables that `test` takes samples of
	$(RUN) -m pytest $(ON_ALL_CORES) -m ''

mutants: $(BUILT) $(TOOLS)  ## see that the tests notice planted faults; ONLY='core/* ops/...' for some
	$(RUN) -m tests.mutants $(foreach pattern,$(ONLY),'$(pattern)')

random-programs: $(BUILT) $(TOOLS)  ## differentiate random programs: 200,000 of ops, 10,000 of nested bodies
	$(RUN) -m tests.ops.mixed_programs --count 200000
	$(RUN) -m tests.graph.nested_programs --count 10000

mutated-files: $(BUILT) $(TOOLS)  ## load 100,000 mutated files of graphs (20 minutes)
	$(RUN) -m tests.graph.model.mutated_files --count 100000

bench: $(BUILT) $(TOOLS)  ## compare the Cython tape with the plain-Python one
	$(RUN) -m bench

bench-smoke: smoke-bench smoke-bench.ops smoke-bench.peers  ## run every benchmark once, at its smallest size

smoke-%: $(BUILT) $(TOOLS)
	$(RUN) -m $* --smoke

bench-peers: build $(PEERS)/installed  ## compare cytape with other libraries, from .venv-peers; writes docs/peers.*, docs/gradient_costs.svg
	$(PEERS)/bin/python -m bench.peers \
	    --json docs/peers.json --markdown docs/peers.md --plot docs/peers.svg
	$(RUN) -m bench.peer_pages docs/peers.json

bench-ops: build $(PEERS)/installed  ## what the derivative of every op costs, with autograd beside; writes docs/op_prices.*
	$(PEERS)/bin/python -m bench.ops --markdown docs/op_prices.md --plot docs/op_prices.svg

bench-scipy: $(BUILT) $(TOOLS)  ## gradients of SciPy's and nn's functions, steps of optimizers, against their limits: ten minutes
	for rows in $(basename $(notdir $(wildcard bench/scipy_rows/[a-z]*.py))); do \
	    $(RUN) -m bench.scipy_rows.$$rows; done
	$(RUN) -m bench.optimizer_rows
	$(RUN) -m bench.neural_rows

bench-dependents: build  ## test suites of packages that use autograd, on autograd and on cytape; writes docs/dependents.json, docs/from_autograd.md
	$(RUN) -m bench.dependents

bench-instructions: build  ## count the instructions of an op under valgrind; fail if they are more than before
	$(RUN) -m bench.instructions --check

lint: lint-ruff lint-mypy lint-pyright lint-cython $(HINTS)  ## ruff, mypy, pyright, cython-lint, Cython's warnings and performance hints, the C compiler's warnings

lint-ruff: $(TOOLS)
	$(RUN) -m ruff check .

lint-mypy: $(BUILT) $(TOOLS)
	$(RUN) -m mypy

lint-pyright: $(BUILT) $(TYPES)
	$(VENV)/bin/basedpyright

lint-cython: $(TOOLS)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint cytape examples  # it looks for pycodestyle there

coverage: $(BUILT) $(TOOLS)  ## run the tests on a build in build/coverage that notes lines of .py and .pyx
	mkdir -p $(TRACED)
	find $(TRACED) -type f ! -name '*.[co]' ! -name '*.so' -delete  # what the build reuses
	tar -cf - --exclude='./.*' --exclude=./build --exclude='*.so' --exclude=__pycache__ . \
	    | tar -xf - -C $(TRACED)
	cd $(TRACED) && CYTAPE_DEBUG=1 $(CURDIR)/$(RUN) setup.py -q build_ext --inplace
	cd $(TRACED) && export PYTHONPATH=$(CURDIR)/$(TRACED) && \
	    $(CURDIR)/$(RUN) -m pytest $(ON_ALL_CORES) --cov --cov-report= \
	        -m 'not signals and not exhaustive' && \
	    $(CURDIR)/$(RUN) -m pytest $(ON_ALL_CORES) -m signals && \
	    $(CURDIR)/$(RUN) -m tests.lines_run && \
	    $(CURDIR)/$(RUN) -m coverage report --fail-under=97

docs: $(BUILT) $(DOCS)  ## build the documentation site in build/site; warnings are errors
	$(RUN) -m sphinx -c docs -d build/doctrees -j auto -q -W --keep-going . build/site

docs-test: docs  ## look at the pages of the site in headless Chromium
	$(RUN) -m pytest tests/site

clean:  ## delete everything that was built; .venv stays
	rm -rf build dist cytape.egg-info .coverage $(INSTALLED) $(BUILT)
	find cytape -name '*.so' -delete

$(RUN):
	$(PYTHON) -m venv $(VENV)

# Cython does not notice that its directives have changed: a new setup.py starts from no C files.
# The package is found in this folder, by a .pth file: an editable install would take longer.
$(INSTALLED): pyproject.toml setup.py | $(RUN)
	rm -rf build/c build/lint $(TRACED)
	$(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	    | xargs $(RUN) -m pip install -q --no-compile --disable-pip-version-check
	echo '$(CURDIR)' >"$$($(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/cytape.pth"
	touch $@

$(TOOLS): $(INSTALLED)
	$(RUN) -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["test"], *extras["bench"], *extras["lint"], sep="\n")' \
	    | xargs $(RUN) -m pip install -q --no-compile --disable-pip-version-check
	touch $@

$(VENV)/%-extra: $(INSTALLED)
	$(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"], sep="\n")' \
	    | xargs $(RUN) -m pip install -q --no-compile --disable-pip-version-check
	touch $@

# The same Python and NumPy's stable ABI: the modules that are built in place serve here, too.
$(PEERS)/installed: bench/peer-requirements.txt | $(RUN)
	$(RUN) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q --disable-pip-version-check -r bench/peer-requirements.txt
	touch $@

$(BUILT): $(INSTALLED) $(CYTHON_SOURCES)
	$(RUN) setup.py -q egg_info build_ext --inplace
	touch $@

$(HINTS): $(INSTALLED) $(CYTHON_SOURCES)
	mkdir -p $(@D)
	$(RUN) -c 'from setup import extensions; extensions("$(@D)", force=True)' >$(@D)/log 2>&1 \
	    || { cat $(@D)/log; exit 1; }
	! grep -A 1 -E '^(performance hint|warning):' $(@D)/log
	! grep -r -o -h '__Pyx_WriteUnraisable("[^"]*"' $(@D)  # errors that a noexcept function swallows
	find $(@D) -name '*.c' | xargs -n 1 -P 4 $(CC) -fsyntax-only -Wall -Werror \
	    $$($(RUN) -c 'import numpy, sysconfig; print("-I" + numpy.get_include(), "-I" + sysconfig.get_path("include"), "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION")')
	touch $@
