# No target connects to an AWS account: everything runs on this machine. To deploy to an account, use `npx cdk deploy`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

ENV ?= dev#               environments/$(ENV).yaml
ifdef env
$(error write ENV in capitals: make $(or $(MAKECMDGOALS),up) ENV=$(env))
endif
OUT = cdk.out/$(ENV)
LOG = cdk.out/$(ENV).log#  every line of the last deployment; VERBOSE=1 shows them
SHOW = $(if $(VERBOSE),tee -a $(LOG),python -m scripts.phases $(LOG))

# programs in .venv name its path: in a folder that was moved or copied they would not start, or start those of the old one
INTERPRETER = sed -nE "1s/^\#!(.*python[^ ]*)$$/\1/p; 2s/^'''exec' \"([^\"]*)\".*/\1/p" .venv/bin/ultracluster | head -1
ifneq ($(shell [ ! -f .venv/bin/ultracluster ] || [ "$$(dirname "$$($(INTERPRETER))")" -ef .venv/bin ] || echo moved),)
$(info This folder was moved or copied: the packages in .venv are installed again)
$(shell rm -rf .venv)
endif

export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
unexport AWS_PROFILE AWS_DEFAULT_PROFILE#  a profile that does not exist stops the import of moto
unexport PYTHONDONTWRITEBYTECODE#        without bytecode, importing aws_cdk takes 3 s longer
export CDK_VALIDATION := false#          costs 1-4 s per process; one test runs with it on
export CDK_DISABLE_CLI_TELEMETRY := true
export AWS_EC2_METADATA_DISABLED := true

##@ Try it
.PHONY: help install up observe status down
help: ## Show this list
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

install: .venv/installed node_modules/.package-lock.json ## Install the locked packages into .venv and node_modules

up: install ## Start the embedded AWS, deploy ENV (default: dev) and list its resources
	ultracluster local up environments/$(ENV).yaml
	. .localaws/env; cdk synth --quiet --no-notices -c env=$(ENV) --output $(OUT)
	rm -f $(LOG)
	. .localaws/env; cdk bootstrap --no-notices --app $(OUT) 2>&1 | $(SHOW)
	. .localaws/env; cdk deploy --no-notices --app $(OUT) --all --require-approval never --progress events 2>&1 | $(SHOW)
	ultracluster local status

observe: install ## Serve a day of a made-up fleet on loopback: alerts that fire, and the dashboards
	python -m scripts.observe

status: install ## List the resources in the embedded AWS
	ultracluster local status

down: install ## Destroy ENV on the embedded AWS, list what is retained, stop if nothing else is deployed
	if ultracluster local status >/dev/null 2>&1; then SHOW="$(SHOW)" scripts/destroy.sh $(ENV); fi
	ultracluster local down

synth: install ## Write the CloudFormation templates of ENV to cdk.out/ENV
	cdk synth --quiet --no-notices -c env=$(ENV) --output $(OUT)

##@ Check it
.PHONY: synth test test-all test-kubernetes engines simulator unit later lint types lock-check schema-check soak cdk-corpus bench
test: install ## Run the tests; the slow gates on six environments
	pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test-all: install ## Run the tests; the slow gates on every shipped environment
	pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --every-environment

test-kubernetes: engines ## Run the tests with Kubernetes' own servers, Kueue and JobSet
	ULTRACLUSTER_SERVERS_REQUIRED=1 pytest --numprocesses 0 tests/servers

engines: install ## Build these servers from Go modules, once; needs Go 1.26
	scripts/kubernetes_servers.sh

simulator: tests/access/simulator/node_modules/.package-lock.json ## Install the policy simulator of tests/access (AGPL)

unit: install ## Run the tests that need neither the CDK nor the embedded AWS
	pytest --numprocesses auto tests/unit tests/kubernetes

later: install ## Run the unit tests, and synthesise every shipped file, with the clock of versions 18 months ahead
	PYTHONPATH=tests/later pytest --numprocesses auto tests/unit tests/contract/test_time.py

lint: install ## Check style and formatting
	ruff check
	ruff format --check

types: install ## Check types (mypy, strict)
	mypy

lock-check: install ## Check that the lock files match pyproject.toml and package.json
	scripts/lock-check.sh

schema-check: install ## Check that the committed JSON Schema matches the models
	ultracluster schema | diff -u schema/environment.schema.json -

soak: install ## Load the embedded AWS and print what it bears; takes minutes
	python -m benchmarks.soak

cdk-corpus: install ## Deploy public CDK snapshots from the folder DIR to the embedded AWS
	python -m scripts.cdk_corpus $(DIR)

bench: install ## Measure the speed goals of docs/performance.md
	python -m benchmarks

##@ Change it
.PHONY: format lock schema docs previews snapshots clean
format: install ## Format the code and apply automatic fixes
	ruff format
	ruff check --fix

lock: install ## Update requirements.txt and package-lock.json, keeping locked versions
	scripts/lock.sh requirements.txt
	npm install --package-lock-only >/dev/null
	npm install --package-lock-only --prefix tests/access/simulator >/dev/null

schema: install ## Write the JSON Schema of the environment file
	mkdir -p schema
	ultracluster schema >.venv/schema.json && mv .venv/schema.json schema/environment.schema.json

docs: install ## Regenerate docs from code: error examples, keys of the environment file, pictures
	python -m scripts.metric_groups
	python -m scripts.errors_doc
	python -m scripts.environment_doc
	python -m scripts.metrics_doc
	python -m scripts.architecture_svg

previews: install ## Draw docs/dashboards from a made-up fleet; needs Prometheus
	python -m scripts.observe --previews

snapshots: install ## Save the current templates as the new snapshots
	pytest tests/snapshots --snapshot-update

clean: ## Remove build output and caches; keep installed packages
	rm -rf cdk.out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -not -path './node_modules/*' -prune -exec rm -rf {} +

.venv/installed: requirements.txt pyproject.toml localaws/pyproject.toml scripts/install.sh
	@scripts/install.sh
	@touch $@

tests/access/simulator/node_modules/.package-lock.json: tests/access/simulator/package-lock.json | .venv/installed
	@echo "Installing the policy simulator"
	@scripts/simulator.sh
	@touch $@

node_modules/.package-lock.json: package-lock.json package.json .npmrc | .venv/installed
	@echo "Installing the CDK CLI"
	@npm ci
	@touch $@
