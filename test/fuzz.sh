#!/bin/sh
# Runs every fuzz target of the packages for FUZZTIME (default 30s) each. Inputs
# are shortened for a second at most: by default that takes the whole time.
set -eu

for package in $(go list "${@:-./...}"); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 1s "$package"
	done
done
