# Everything here works on this machine alone: no target talks to an AWS account. Deploying for real is `npx cdk deploy`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

ENV ?= dev#               environments/$(ENV).yaml
OUT = cdk.out/$(ENV)

export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
unexport PYTHONDONTWRITEBYTECODE#        without bytecode, importing aws_cdk takes 3 s longer
export CDK_VALIDATION := false#          costs 1-4 s a process; the test suite has a gate with it on
export CDK_DISABLE_CLI_TELEMETRY := true
export AWS_EC2_METADATA_DISABLED := true

##@ Try it
.PHONY: help install up status down
help: ## Show this list
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

install: .venv/installed node_modules/.package-lock.json ## Install what the lock files name into .venv and node_modules

up: install ## Start the embedded AWS, deploy ENV (dev) to it and show what exists
	ultracluster local up environments/$(ENV).yaml
	. .localaws/env; cdk synth --quiet --no-notices -c env=$(ENV) --output $(OUT)
	. .localaws/env; cdk bootstrap --no-notices --app $(OUT)
	. .localaws/env; cdk deploy --no-notices --app $(OUT) --all --require-approval never --progress events
	ultracluster local status

status: install ## Show what exists on the embedded AWS
	ultracluster local status

down: install ## Destroy ENV on the embedded AWS, name what is retained, stop when nothing else is deployed
	if ultracluster local status >/dev/null 2>&1; then scripts/destroy.sh $(ENV); fi
	ultracluster local down

synth: install ## Write the CloudFormation templates of ENV to cdk.out/ENV
	cdk synth --quiet --no-notices -c env=$(ENV) --output $(OUT)

##@ Check it
.PHONY: synth test unit lint types lock-check schema-check bench
test: install ## Run every test
	pytest --numprocesses auto --dist loadfile

unit: install ## Run the tests that need neither CDK nor the embedded AWS
	pytest tests/unit

lint: install ## Find style faults and unformatted files
	ruff check
	ruff format --check

types: install ## Check types, strictly
	mypy

lock-check: install ## Prove that the lock files are what pyproject.toml and package.json give
	scripts/lock-check.sh

schema-check: install ## Prove that the committed JSON Schema is what the models give
	ultracluster schema | diff -u schema/environment.schema.json -

bench: install ## Measure the speed that docs/performance.md promises
	python -m benchmarks

##@ Change it
.PHONY: format lock schema docs snapshots clean
format: install ## Format the code and fix what can be fixed by itself
	ruff format
	ruff check --fix

lock: install ## Export requirements.txt and package-lock.json anew, keeping locked versions
	scripts/lock.sh requirements.txt
	npm install --package-lock-only >/dev/null

schema: install ## Write the JSON Schema of the environment file
	mkdir -p schema
	ultracluster schema >.venv/schema.json && mv .venv/schema.json schema/environment.schema.json

docs: install ## Write what the docs take from the code: examples of errors, keys of the environment file, the picture
	python -m scripts.errors_doc
	python -m scripts.environment_doc
	python -m scripts.architecture_svg

snapshots: install ## Accept the present templates as the new snapshots
	pytest tests/snapshots --snapshot-update

clean: ## Remove build output and caches; what is installed stays
	rm -rf cdk.out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -not -path './node_modules/*' -prune -exec rm -rf {} +

.venv/installed: requirements.txt pyproject.toml scripts/install.sh
	@scripts/install.sh
	@touch $@

node_modules/.package-lock.json: package-lock.json package.json .npmrc | .venv/installed
	@echo "Installing the CDK CLI"
	@npm ci
	@touch $@
