# Every target sets up .venv by itself; `make help` lists them.
PYTHON ?= python3
CORPUS ?=
JOBS ?= auto
KEEP ?=
N ?= 1000
SEED ?=
QUERIES ?=
FILES ?=
MINUTES ?= 10
SF ?= 1
ONLY ?=
BENCH ?=

BIN := .venv/bin
READY := .venv/.ready
# a process a core, more than eight of which would wait for each other; each keeps to a stretch of
# neighbouring tests, which share fixtures, and takes of another's when its own is done
PARALLEL := --numprocesses $(JOBS) --maxprocesses 8 --dist worksteal
RAY_READY := .venv/.ray-ready
ORACLES_BIN := .venv-oracles/bin
ORACLES_READY := .venv-oracles/.ready
PEERS_READY := .venv-peers/.ready
DAFT_READY := .venv-daft/.ready
CLIENTS_BIN := .venv-clients/bin
CLIENTS_READY := .venv-clients/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pyright comes from constraints.txt: no notice about a newer one
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo screenshots test check bench bench-profiles bench-manifests bench-memory bench-planning tpch corpus fuzz fuzz-sql hostile chaos oracles clients java-17 ray clean
.DEFAULT_GOAL := help

help:
	@echo "make demo           a small lake, a coordinator and workers, and a client (KEEP=1: leave it running)"
	@echo "make screenshots    take the pictures of the status pages in docs/ again (needs Debian's chromium-driver)"
	@echo "make test           the tests, doctests included"
	@echo "make check          ruff, mypy, pyright and the import direction"
	@echo "make bench          eight queries of 12 million trips, beside PyIceberg, Daft, Polars, DuckDB and pyarrow;"
	@echo "                    docs/benchmarks.md is brought up to date (BENCH=\"--parts trips --rounds 3\": a part of"
	@echo "                    it, into build/bench alone; BENCH=--quick: a try, in minutes; BENCH=--help)"
	@echo "make bench-profiles    where the time of these queries goes (needs Debian's linux-perf)"
	@echo "make bench-manifests   what manifests cost to decode and to prune"
	@echo "make bench-memory   what clients that read little make a worker hold"
	@echo "make bench-planning    what plans of up to a million files take, beside Iceberg Java, Polars and PyIceberg"
	@echo "                    (FILES=\"1000 100000\", ONLY=floeberg without the others; else needs Java 17)"
	@echo "make tpch           TPC-H's queries over a fleet, beside DuckDB (SF=1 QUERIES=\"1 6\")"
	@echo "make fuzz           compare with a plain reader on random tables (N=1000 SEED=…)"
	@echo "make fuzz-sql       compare answers to random queries in SQL with DuckDB's (N=1000 SEED=…)"
	@echo "make hostile        attack a fleet with tampered tickets, tokens and commands (N=100000 SEED=…)"
	@echo "make chaos          kill workers and coordinators under load, on an object store that fails, and compare"
	@echo "                    every answer (MINUTES=10 SEED=…)"
	@echo "make corpus CORPUS=DIR   read every table of a corpus and compare with its expected rows"
	@echo "make oracles        read and plan what Spark, PyIceberg and DuckDB write, and the other way round"
	@echo "                    (needs Java 17; CORPUS=DIR: plan its tables as well)"
	@echo "make clients        SQL clients that need an environment of their own: flightsql-dbapi, and Arrow's for Java"
	@echo "                    (needs Java 17; the others are among the tests)"
	@echo "make ray            workers on a Ray cluster of several nodes, which are this machine (installs Ray)"
	@echo "make clean          remove all of .venv* and caches"
	@echo "JOBS=0              test and corpus in one process instead of one a core"
	@echo "PYTHON=python3.12   the Python that .venv is made from (3.11 or newer)"

demo: $(READY)
	@$(BIN)/python -m deploy.demo $(if $(KEEP),--keep)

screenshots: $(READY)
	@$(BIN)/python -m deploy.demo.screenshots

test: $(READY)
	@$(BIN)/python -m pytest $(PARALLEL)

check: $(READY)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/mypy & mypy=$$!; $(BIN)/pyright --pythonpath $(BIN)/python; pyright=$$?; \
	  wait $$mypy && exit $$pyright  # both write when they are done, mypy long before

bench: $(READY) $(PEERS_READY) $(DAFT_READY)
	@$(BIN)/python -m tests.bench.taxi --peers .venv-peers/bin/python --daft .venv-daft/bin/python \
	  $(or $(BENCH),--page docs/benchmarks.md)

bench-profiles: $(READY)
	@$(BIN)/python -m tests.bench.taxi --parts profiles $(or $(BENCH),--page docs/benchmarks.md)

bench-manifests: $(READY)
	@$(BIN)/python -m tests.bench.manifests

bench-memory: $(READY)
	@$(BIN)/python -m tests.bench.worker_memory

bench-planning: $(READY) $(if $(ONLY),,java-17 $(ORACLES_READY))
	@$(BIN)/python -m tests.bench.planning --peers $(ORACLES_BIN)/python \
	  $(if $(FILES),--files $(FILES)) $(if $(ONLY),--only $(ONLY))

tpch: $(READY)
	@$(BIN)/python -m tests.bench.tpch --scale $(SF) $(if $(QUERIES),--queries $(QUERIES))

corpus: $(READY)
	@test -d "$(CORPUS)" || { echo "name the corpus: make corpus CORPUS=DIR" >&2; exit 2; }
	@$(BIN)/python -m pytest $(PARALLEL) tests/corpus --corpus "$(CORPUS)"

fuzz: $(READY)
	@$(BIN)/python -m tests.fuzz --examples $(N) $(if $(SEED),--seed $(SEED))

fuzz-sql: $(READY)
	@$(BIN)/python -m tests.sql.fuzz --examples $(N) $(if $(SEED),--seed $(SEED))

hostile: $(READY)
	@$(BIN)/python -m tests.fuzz.hostile --examples $(N) $(if $(SEED),--seed $(SEED))

chaos: $(READY)
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

oracles: java-17 $(ORACLES_READY)
	@$(ORACLES_BIN)/python -m pytest tests/oracles --oracles -q --tb=line \
	  $(if $(CORPUS),--corpus "$(CORPUS)")

clients: java-17 $(READY) $(CLIENTS_READY)
	@$(BIN)/python -m pytest -q tests/sql/clients --clients $(CLIENTS_BIN)/python

ray: $(RAY_READY)
	@$(BIN)/python -m pytest -q tests/worker/test_on_ray.py

java-17:
	@java -version 2>&1 | grep -q 'version "17\.' || { \
	  echo "this needs Java 17, and the 'java' on PATH is not that (Debian: openjdk-17-jre-headless)" >&2; exit 1; }

clean:
	@rm -rf .venv .venv-oracles .venv-peers .venv-daft .venv-clients .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "floeberg needs Python 3.11 or newer, and '$(PYTHON)' is not that: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@echo "setting up .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --upgrade pip
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(RAY_READY): $(READY)
	@echo "installing Ray"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[ray]'
	@touch $@

$(ORACLES_READY): pyproject.toml constraints.txt tests/oracles/requirements.txt
	@echo "setting up .venv-oracles (Spark is large: some minutes)"
	@$(PYTHON) -m venv .venv-oracles
	@$(ORACLES_BIN)/python -m pip install -qq --upgrade pip
	@$(ORACLES_BIN)/python -m pip install -qq --constraint constraints.txt \
	  --requirement tests/oracles/requirements.txt --editable '.[dev]'
	@touch $@

# the pins of these would conflict with floeberg's and with each other's
$(PEERS_READY): tests/bench/taxi/peers.txt
	@echo "setting up .venv-peers"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install -qq --upgrade pip
	@.venv-peers/bin/python -m pip install -qq --requirement $<
	@touch $@

$(DAFT_READY): tests/bench/taxi/daft.txt
	@echo "setting up .venv-daft"
	@$(PYTHON) -m venv .venv-daft
	@.venv-daft/bin/python -m pip install -qq --upgrade pip
	@.venv-daft/bin/python -m pip install -qq --requirement $<
	@touch $@

# not by constraints.txt: flightsql-dbapi wants SQLAlchemy before its version 2
$(CLIENTS_READY): tests/sql/clients/elsewhere/requirements.txt tests/sql/clients/elsewhere/jars.txt
	@echo "setting up .venv-clients (some 300 MB)"
	@$(PYTHON) -m venv .venv-clients
	@$(CLIENTS_BIN)/python -m pip install -qq --upgrade pip
	@$(CLIENTS_BIN)/python -m pip install -qq --requirement tests/sql/clients/elsewhere/requirements.txt
	@$(CLIENTS_BIN)/python -m pip install -qq --no-deps --requirement tests/sql/clients/elsewhere/jars.txt
	@touch $@
