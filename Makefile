# Two commands do everything: `make run` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: run test lint gen clean

run: $(VENV)/.installed
	$(BIN)/strata chat --temp 0 --prefix "The next number is" "Complete the sequence: 1, 2, 3,"

test: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

lint: $(VENV)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gen: $(VENV)/.installed
	$(BIN)/python -m strata_cli.cli.generate

clean:
	rm -rf $(VENV) dist build *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.tested: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo,test]'
	touch $@ $(VENV)/.installed
