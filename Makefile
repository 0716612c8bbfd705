# Everything runs in .venv, which the first command that needs it makes: see "Set-up" below.

VENV   := .venv
BIN    := $(VENV)/bin
PYTHON := $(BIN)/python
UV     := $(BIN)/uv
READY  := $(VENV)/.ready
DOCS   := build/venv-docs
CELERY := build/venv-celery
S3     := build/venv-s3

# What a user's shell may hold and what would change what is run here. Without .pyc files each Airflow process
# starts three times slower.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONOPTIMIZE PYTHONWARNINGS
unexport VIRTUAL_ENV CONDA_PREFIX UV_PYTHON UV_SYSTEM_PYTHON UV_PROJECT_ENVIRONMENT

# uv trusts the certificates pip trusts: those of the system, a company's own among them.
export UV_SYSTEM_CERTS := true
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- For users ----------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(READY) ## Run an example from end to end against a local workspace service
	@$(PYTHON) dev/demo.py $(ARGS)

.PHONY: ui
ui: $(READY) ## Start Airflow with the examples and a local workspace service
	@$(PYTHON) dev/ui.py $(ARGS)

# --- Checks -------------------------------------------------------------------------------------------------

# Four at once, also on two cores: tests wait for a third of their time.
# In the order of the folders: the files that take longest come first, and no worker is left alone with one of them.
.PHONY: test
test: $(READY) ## Run the tests; ARGS="-k invites -x" is handed to pytest
	$(PYTHON) -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder \
		-m "not slow and not e2e" --ignore tests/e2e $(ARGS)

# Without them, and without the right to install them, the tests in the browser are skipped and say so.
.PHONY: browser
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
		[ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -qq --no-install-recommends chromium chromium-driver; } || \
		echo "No chromium and chromedriver here: the tests in the browser will be skipped"

.PHONY: test-slow
test-slow: $(READY) ## Run the tests that take longer: every example Dag, every command, memory, a day in fast-forward, many examples
	$(PYTHON) -m pytest --numprocesses auto --maxprocesses 2 --dist loadfile --no-loadscope-reorder \
		-m "(slow or hypothesis) and not e2e" --hypothesis-profile slow -rPfE $(ARGS)

.PHONY: postgres
postgres: $(READY) postgresql ## Run the longest tasks of each kind in a whole Airflow with PostgreSQL, in four minutes
	$(PYTHON) -m pytest -m e2e tests/e2e/test_postgres.py -rs $(ARGS)

.PHONY: e2e
e2e: $(READY) browser postgresql ## Run the tests that need a whole Airflow; without ARGS those of e2e-celery as well
	@$(INDEX); $(PYTHON) -m pytest -m e2e -s $(or $(ARGS),tests/e2e)
	$(if $(ARGS),,@$(MAKE) --no-print-directory e2e-celery)

.PHONY: e2e-celery
e2e-celery: $(CELERY)/.ready redis postgresql ## Kill a Celery worker in the middle of its work; people from PostgreSQL
	$(CELERY)/bin/python -m pytest -m e2e tests/e2e/test_celery.py tests/e2e/test_warehouse.py -s $(ARGS)

.PHONY: e2e-s3
e2e-s3: $(S3)/.ready ## Read rosters from a local S3 and write reports to it, through Airflow's Amazon provider
	$(S3)/bin/python -m pytest -m e2e tests/e2e/test_object_storage.py -s $(ARGS)

.PHONY: faults
faults: $(READY) ## Try every operation under every fault, and print what came of it
	@$(PYTHON) -m tests.faults.matrix $(ARGS)

.PHONY: test-all
test-all: $(READY) ## Run the tests on each supported Airflow and Python; ARGS="lowest 3.1-3.10 -- -k invites" some of them
	@$(INDEX); $(BIN)/nox $(if $(filter-out --,$(firstword $(ARGS))),--session) $(ARGS)

.PHONY: dist
dist: $(READY) ## Build the source distribution and the wheel in dist/; the same commit gives the same bytes
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600)} \
		$(PYTHON) -m build --no-isolation
	$(BIN)/twine check --strict dist/*

# What the wheel brings along, at the versions that the tests had.
.PHONY: sbom
sbom: $(READY) ## List what an installation consists of, as a CycloneDX SBOM in build/; after `make dist`
	@rm -rf build/venv-sbom; $(UV) venv --quiet --no-project --python $(PYTHON) build/venv-sbom
	@$(INDEX); $(UV) pip install --quiet --python build/venv-sbom/bin/python --no-build \
		--constraints constraints/current.txt dist/*.whl
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --mc-type library \
		--output-file build/sbom.cdx.json build/venv-sbom/bin/python

.PHONY: coverage
coverage: $(READY) ## Check that the tests reach every branch of what decides: api/, procedures/, and above them
	$(PYTHON) -m pytest --quiet --numprocesses auto --maxprocesses 4 -m "not slow" tests/unit tests/contract tests/meta tests/robustness \
		--cov=airflow_provider_workspace.api \
		--cov=airflow_provider_workspace.procedures \
		--cov=airflow_provider_workspace.access.rules \
		--cov=airflow_provider_workspace.access.members \
		--cov=airflow_provider_workspace.access.grants.plan \
		--cov=airflow_provider_workspace.access.reviews.answer \
		--cov=airflow_provider_workspace.access.reviews.outcome \
		--cov=airflow_provider_workspace.access.reviews.page \
		--cov=airflow_provider_workspace.access.reviews.population \
		--cov=airflow_provider_workspace.organization.collaborators \
		--cov=airflow_provider_workspace.organization.file \
		--cov=airflow_provider_workspace.organization.importing \
		--cov=airflow_provider_workspace.organization.plan \
		--cov-branch --cov-report=term --cov-fail-under=100

LINTERS := "ruff check" "ruff format --check" mypy basedpyright "lint-imports --no-logo"

.PHONY: lint
lint: $(READY) ## Check style, types, imports between the parts, generated code, workflows, and that no file holds a machine's paths
	@status=0; \
	for linter in $(LINTERS); do echo "==> $$linter"; $(BIN)/$$linter || status=1; done; \
	echo "==> the schema of organization files"; $(PYTHON) dev/make_organization_schema.py --check || status=1; \
	echo "==> the chart and the table of the benchmarks"; $(PYTHON) benchmarks/chart.py --check || status=1; \
	echo "==> workflows"; $(BIN)/zizmor --quiet --offline --persona pedantic .github || status=1; \
	echo "==> addresses"; $(MAKE) --no-print-directory lint-addresses || status=1; \
	exit $$status

# Paths of somebody's machine, addresses of package indexes. The patterns do not match themselves.
ADDRESSES := (^|[^[:alnum:]_.~-])/(home|root|work|Users)/|pypi[.]org/simple|pythonhosted[.]|(index-url|find-links)[ =]+(https?:|file:|/)

.PHONY: lint-addresses
lint-addresses:
	@found=$$(git grep --untracked -I -n -E '$(ADDRESSES)' -- . ':!LICENSE'); status=$$?; \
	if [ $$status -eq 0 ]; then echo "$$found"; echo "Machine paths or index addresses: see above."; exit 1; fi; \
	if [ $$status -ne 1 ]; then echo "Machine paths and index addresses not looked for: not a git checkout."; fi

.PHONY: docs
docs: $(DOCS)/.ready ## Build the documentation into build/docs
	@rm -rf build/docs build/doctrees
	$(DOCS)/bin/python -m sphinx -nW --keep-going --quiet -d build/doctrees docs build/docs
	$(DOCS)/bin/python dev/check_search.py
	$(DOCS)/bin/python dev/check_reference.py
	@echo "==> Open build/docs/index.html"

.PHONY: format
format: $(READY) ## Put the code into shape
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# --- Speed --------------------------------------------------------------------------------------------------
# Instructions are counted with Valgrind: most virtual machines have no counters of their own.

BENCH_READY := build/bench-venv/.ready
COUNTER     := build/bench/counter.so

.PHONY: bench
bench: $(BENCH_READY) $(COUNTER) ## Measure against the peers and the targets, and draw the figures of the documentation; QUICK=1 for fewer rounds
	@build/bench-venv/bin/python benchmarks/run.py $(if $(QUICK),--quick) $(ARGS)

.PHONY: budget
budget: $(READY) $(COUNTER) ## Check that parsing and calling take no more instructions than before, and that code is not packed
	@$(PYTHON) benchmarks/density.py
	@$(PYTHON) benchmarks/budget.py $(ARGS)

$(COUNTER): benchmarks/counter.c
	@{ command -v valgrind && command -v cc && [ -e /usr/include/valgrind/callgrind.h ]; } >/dev/null || { \
		echo "==> Installing Valgrind and a C compiler"; \
		apt-get install --quiet --quiet --yes valgrind gcc libc6-dev || { \
			apt-get update --quiet --quiet && apt-get install --quiet --quiet --yes valgrind gcc libc6-dev; } || { \
			echo "This needs valgrind and a C compiler. On Debian and Ubuntu:  apt install valgrind gcc libc6-dev"; \
			exit 1; }; }
	@mkdir -p $(@D)
	@cc -shared -fPIC -O2 -o $@ $<

# --- Upkeep -------------------------------------------------------------------------------------------------

COMPILE := $(UV) pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

# An older Airflow is tried with the packages of its time, as its own constraints would have them: the newest ones
# break the releases before 3.3.
TEST := $(COMPILE) pyproject.toml - --group test

.PHONY: lock
lock: $(VENV)/.uv ## Resolve all versions anew and write constraints/
	@$(INDEX); $(COMPILE) pyproject.toml $(foreach group,setup dev docs celery bench,--group $(group)) --output-file constraints/current.txt
	@$(INDEX); echo 'apache-airflow==3.1.0' | $(TEST) --exclude-newer 2025-10-06 --output-file constraints/airflow-3.1.txt
	@$(INDEX); echo 'apache-airflow~=3.2.0' | $(TEST) --exclude-newer 2026-06-15 --output-file constraints/airflow-3.2.txt
	@$(INDEX); echo 'apache-airflow==3.1.0' | $(TEST) --resolution lowest-direct --exclude-newer 2025-10-06 \
		--output-file constraints/lowest.txt

.PHONY: screenshots
screenshots: $(READY) browser ## Take the pictures of docs/images anew; ARGS="-k page" some of them
	WORKSPACE_SCREENSHOTS=1 $(PYTHON) -m pytest -m e2e tests/e2e/test_approval.py tests/e2e/test_browser.py \
		tests/e2e/test_page.py $(ARGS)

.PHONY: clean
clean: ## Remove .venv, caches and what was built
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* \
		.mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find airflow_provider_workspace example_dags tests dev benchmarks docs \
		-name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- Set-up -------------------------------------------------------------------------------------------------
# python3 -m venv, then uv by pip, then everything else by uv: each at the version and with the hashes of constraints/.

# Another Python than python3, of a fresh set-up: make clean test BASE_PYTHON=python3.12
BASE_PYTHON ?= python3
SUPPORTED   := import sys; sys.exit(sys.version_info < (3, 10))

PIP := $(PYTHON) -m pip --disable-pip-version-check

# A checkout that was copied or moved has a .venv whose programs point to the old place: it is made again.
ifneq ($(shell cat $(VENV)/.uv 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.uv
endif

$(VENV)/.uv: constraints/current.txt
	@$(BASE_PYTHON) -c '$(SUPPORTED)' || { \
		echo "This needs Python 3.10 or newer as $(BASE_PYTHON); here it is $$($(BASE_PYTHON) --version 2>&1)."; \
		echo "Name another one:  make BASE_PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(BASE_PYTHON) -c 'import ensurepip, venv' || { \
		echo "$(BASE_PYTHON) lacks its venv module. On Debian and Ubuntu:  apt install python3-venv"; exit 1; }
	@[ "$$(cat $@ 2>/dev/null)" = '$(CURDIR)' ] && $(PYTHON) -c '$(SUPPORTED)' || { \
		echo "==> Making $(VENV) with $$($(BASE_PYTHON) --version)"; \
		rm -rf $(VENV); $(BASE_PYTHON) -m venv $(VENV); }
	@echo "==> Installing uv, which installs the rest"
	@sed -n '/^uv==/,/[^\\]$$/p' $< >$(VENV)/uv.txt
	@$(PIP) install --quiet --require-hashes --only-binary :all: -r $(VENV)/uv.txt
	@printf '%s' '$(CURDIR)' >$@

# The index that /etc/pip.conf or a user's own pip.conf name is handed to uv.
INDEX = index="$${PIP_INDEX_URL:-$$($(PIP) config get global.index-url 2>/dev/null)}"; \
	if [ -n "$$index" ]; then export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$index}"; fi

# $(call install,<python>,<groups of pyproject.toml>)
# The hashes of the versions are checked. Wheels only: building a package would fetch build requirements that nobody
# pinned. If uv cannot reach the index, pip tries, for it knows what else pip's settings say; it takes all groups.
define install
@$(INDEX); \
if [ -t 2 ]; then quiet=; else quiet=--quiet; fi; \
$(UV) pip install $$quiet --exact --python $(1) --no-build --compile-bytecode --constraints constraints/current.txt \
	--requirements pyproject.toml $(foreach group,$(2),--group $(group)) || { \
	echo "==> uv could not. Installing with pip, which takes longer"; \
	$(1) -m pip --disable-pip-version-check install $$quiet --require-hashes --only-binary :all: \
		-r constraints/current.txt; }
endef

# $(call install-project,<python>)
define install-project
@echo "==> Installing this project, editable"
@$(UV) pip install --quiet --python $(1) --no-deps --no-build-isolation --offline --editable .
endef

$(READY): $(VENV)/.uv pyproject.toml $(wildcard airflow_provider_workspace/__init__.py)
	@rm -f $@
	@echo "==> Installing Airflow and the tools (a minute or so the first time)"
	$(call install,$(PYTHON),setup dev)
	$(call install-project,$(PYTHON))
	@echo "==> $(VENV) is ready"
	@touch $@

# Airflow is here as well: the reference is read from the code.
$(DOCS)/.ready: $(VENV)/.uv
	@echo "==> Making $(DOCS) (a minute or so)"
	@rm -rf $(DOCS); $(PYTHON) -m venv $(DOCS)
	$(call install,$(DOCS)/bin/python,docs)
	@touch $@

$(CELERY)/.ready: $(VENV)/.uv
	@echo "==> Making $(CELERY), with Airflow, Celery and what they need for Redis and PostgreSQL"
	@rm -rf $(CELERY); $(PYTHON) -m venv $(CELERY)
	$(call install,$(CELERY)/bin/python,celery)
	$(call install-project,$(CELERY)/bin/python)
	@touch $@

# Without versions and hashes: whatever the index has must work.
$(S3)/.ready: $(VENV)/.uv pyproject.toml
	@echo "==> Making $(S3), with Airflow, its Amazon provider and a local S3"
	@rm -rf $(S3); $(PYTHON) -m venv $(S3)
	@$(INDEX); $(UV) pip install --quiet --python $(S3)/bin/python --group s3 apache-airflow
	$(call install-project,$(S3)/bin/python)
	@touch $@

# $(call debian,<program>,<package with it>)
# Without the right to install it, the tests that need it are skipped, or fail in CI, and say so.
define debian
@PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')"; \
command -v $(1) >/dev/null || { \
	echo "==> Installing $(2)"; \
	[ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(2); } || \
	echo "$(2) could not be installed here. On Debian and Ubuntu, as root:  apt install $(2)"
endef

.PHONY: redis postgresql
redis:
	$(call debian,redis-server,redis-server)
postgresql:
	$(call debian,initdb,postgresql)

$(BENCH_READY): $(READY)
	@rm -f $@
	@echo "==> Installing Airflow and the peers into $(@D)"
	@$(PYTHON) -m venv $(@D)
	$(call install,$(@D)/bin/python,bench)
	$(call install-project,$(@D)/bin/python)
	@touch $@
