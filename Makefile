# Everything that is done with this repository, one target each. `make` or `make help` lists them.
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help run check test test-clients bench bench-postgres soak bless doc

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

run: ## Build and play the demo: no token, no network, nothing to set up
	@echo "building; the first time takes some minutes"
	$(CARGO) build
	$(CARGO) run --quiet -- dev

check: ## Formatting, lints and documentation, all without a warning
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items

test: ## All tests that need only Rust and a C compiler
	$(CARGO) test --all-targets

test-clients: ## Other people's programs against the real binary (installs them from PyPI and npm)
	$(CARGO) build
	tests/clients/run

bench: ## Speed and size as one table, ratios to this disk's own floor (release build, about ten minutes)
	$(CARGO) bench --bench bench

bench-postgres: ## The same lease claim beside Postgres 15 on the same disk (installs Debian's postgresql)
	test -x /usr/lib/postgresql/15/bin/pgbench || { apt-get update && apt-get install --yes --no-install-recommends postgresql-15; }
	$(CARGO) bench --bench bench -- postgres

soak: ## The crash tests with 200 kills instead of 25
	PILLARBOX_SOAK_KILLS=200 $(CARGO) test --test it -- crash

bless: ## Accept what golden files should now say; review the difference, commit it alone
	PILLARBOX_BLESS=1 $(CARGO) test --test it -- golden

doc: ## Open the documentation, private items included: src/lib.rs is the map
	$(CARGO) doc --no-deps --document-private-items --open
