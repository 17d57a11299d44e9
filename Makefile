# Every target sets up what it needs. PYTHON: the interpreter to start from (3.11 or later).
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
FUZZ_RUNS ?= 50000
WIRE ?= all

.PHONY: help compare compare-all compare-quick serve test real lint floor wires fuzz fronts clean

help:
	@echo "make compare   measure one app in six execution models, and write a report (needs nothing but Python)"
	@echo "make compare-all   every comparison that has an original, in less than 40 minutes"
	@echo "make serve     serve conf/modes.toml on http://127.0.0.1:8000/"
	@echo "make test      install what the tests need into $(VENV), and run them"
	@echo "make real      install the programs of conf/real that PyPI has, and serve and visit all that are there"
	@echo "make lint      ruff and mypy"
	@echo "make floor     measure wsgi and handler against the least a Python server can cost, and gunicorn"
	@echo "make wires     measure each wire against flup, uWSGI and gunicorn, which are installed apart first"
	@echo "make fronts    write conf/fronts/ anew: what each front server is told to stand before conf/hello.toml"
	@echo "make fuzz      throw $(FUZZ_RUNS) made inputs at each wire's parser (FUZZ_RUNS=N, WIRE=http ...)"

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit("gateways needs Python 3.11 or later; say make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian, apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/installed: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

compare: $(RUN)
	$(RUN) -m bench compare

# Whoever is not installed is named in the reports, with how to install it; the others are measured.
compare-all: $(RUN)
	-$(RUN) -m bench peers install
	$(RUN) -m bench compare --all

compare-quick: $(RUN)
	$(RUN) -m bench compare --quick

serve: $(RUN)
	$(RUN) -m gateways serve --config conf/modes.toml

test: $(VENV)/installed
	$(RUN) -m pytest

$(VENV)/programs: pyproject.toml $(VENV)/installed
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[real]'
	@touch $@

real: $(VENV)/programs
	$(RUN) -m pytest tests/test_real_programs.py tests/test_git.py

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

floor: $(VENV)/installed
	$(RUN) -m bench floor

# A peer that cannot be built here is named in the report, and the others are measured.
wires: $(RUN)
	-$(RUN) -m bench peers install
	$(RUN) -m bench wires

$(VENV)/fuzzer: pyproject.toml | $(RUN)
	@echo "installing atheris into $(VENV): it finds inputs by the code that they reach"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]' \
		|| echo "atheris cannot be installed here: inputs are mutated at random instead"
	@touch $@

fuzz: $(VENV)/fuzzer
	@echo "$(FUZZ_RUNS) executions for each wire, some minutes; what breaks a promise is kept in tests/fuzz/findings"
	$(RUN) -m tests.fuzz $(WIRE) --runs $(FUZZ_RUNS)

fronts: $(RUN)
	PYTHON=$(RUN) conf/fronts/generate

clean:
	rm -rf $(VENV) .venv-peers build *.egg-info .mypy_cache .ruff_cache .hypothesis bench/results tests/fuzz/findings
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
