#!/bin/sh
# Runs every fuzz target of the packages for FUZZTIME (default 30s) each.
set -eu

for package in $(go list "${@:-./...}"); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$package"
	done
done
