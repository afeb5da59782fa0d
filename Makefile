.PHONY: bench bench-postgres

bench: ## the goals of speed and size as one table, release build (about ten minutes; wants a quiet machine)
	cargo bench --bench bench

bench-postgres: ## the same claim and acknowledgement in Postgres 15, beside ours (installs Debian's postgresql if it is missing)
	@test -x /usr/lib/postgresql/15/bin/pgbench || { apt-get update && apt-get install --yes --no-install-recommends postgresql-15; }
	cargo bench --bench bench -- postgres
