# `make demo` and `make test` do all the set-up they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow check format docs figures benchmarks audit clean

demo: $(VENV)/installed
	$(BIN)/snips restore src/snips/assets/example.png --simulate --problem deblur_uniform --sigma 0.1 --prior faces --nfe 50 --out demo --force

# one thread in each of two test processes: more would compete for the cores
test: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

check: $(VENV)/installed-dev docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# into site/; any warning is an error
docs: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# draws the figures of the documentation again: minutes
figures: $(VENV)/installed-dev
	for script in demo method reading problems tutorials; do $(BIN)/python docs/figures/$$script.py || exit 1; done

benchmarks: $(VENV)/installed-dev
	$(BIN)/python benchmarks/operators.py
	$(BIN)/python benchmarks/overhead.py

# of the dependencies; with `pip-audit` on the PATH also against known vulnerabilities
audit: $(VENV)/installed-dev
	$(BIN)/python tools/audit.py

# torch first and by its exact version, so that pip takes the build without CUDA where there is one
$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) torch
	@touch $@

$(VENV)/installed: $(VENV)/torch pyproject.toml
	$(PIP) --editable .
	@touch $@

# With the documentation's tools and the libraries whose operators and denoisers come in. deepinv and torchvision without
# their dependencies, which would replace a CPU build of torch; snips.integrations.torchvision lets that pair be imported.
$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) --editable ".[dev,docs,web,batch,ray,pylops,diffusers,train]"
	$(PIP) --no-deps deepinv torchvision torchmetrics
	$(PIP) einops h5py lightning-utilities matplotlib natsort requests tqdm
	@touch $@

clean:
	rm -rf $(VENV) demo dist build site .pytest_cache .ruff_cache
