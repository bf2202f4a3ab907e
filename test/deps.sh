#!/bin/sh
# Installs what `make test` needs and this machine does not have: a C compiler
# for -race, and the servers that the environment does not name
# (HOOKONCE_TEST_REDIS_URL, HOOKONCE_TEST_POSTGRES_URL, HOOKONCE_TEST_AMQP_URL).
# The servers are only installed: the tests start their own, and the services
# of the distribution stay as they are.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

# exists FILE...: does one of them exist (for patterns)?
exists() {
	for file in "$@"; do
		if [ -e "$file" ]; then return 0; fi
	done
	return 1
}

compiles() {
	have "${CC:-gcc}" && printf '#include <stdlib.h>\nint main(void) { return 0; }\n' |
		"${CC:-gcc}" -x c -o /dev/null - >/dev/null 2>&1
}

tools=
servers=
compiles || tools="gcc libc6-dev"
exists /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem /etc/pki/tls/certs/ca-bundle.crt || tools="$tools ca-certificates"
if [ -z "${HOOKONCE_TEST_AMQP_URL:-}" ]; then
	exists /usr/lib/rabbitmq/bin/rabbitmq-server /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server \
		/opt/rabbitmq/sbin/rabbitmq-server /usr/local/sbin/rabbitmq-server || servers="$servers rabbitmq-server"
fi
if [ -z "${HOOKONCE_TEST_REDIS_URL:-}" ]; then
	have redis-server || have valkey-server || servers="$servers redis-server"
fi
if [ -z "${HOOKONCE_TEST_POSTGRES_URL:-}" ]; then
	have postgres || exists /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres \
		/usr/local/pgsql/bin/postgres || servers="$servers postgresql"
fi
if [ -z "$tools$servers" ]; then exit 0; fi

line="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
missing=$(echo "$tools" "$servers" | xargs)
if ! have apt-get || [ "$(id -u)" != 0 ]; then
	# A container engine may serve what is not installed; the run says so itself.
	if [ -z "$tools" ] && have docker && docker info >/dev/null 2>&1; then
		echo "not installed: $missing; the container engine is asked instead"
		exit 0
	fi
	echo "make test needs: $missing" >&2
	echo "as root on Debian and Ubuntu: $line $missing" >&2
	exit 1
fi

# Without a policy of its own the machine would start every service it installs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' INT TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
echo "installing: $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of packages
apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=120 $missing >/dev/null
