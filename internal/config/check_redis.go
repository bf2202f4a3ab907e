package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// redis checks the address: one server, or the hosts of Sentinel or a cluster.
func (k *checker) redis(s Store) {
	const path = "store.redis"
	scheme, rest, _ := strings.Cut(s.Redis.Reveal(), "://")
	base, fleet, _ := strings.Cut(scheme, "-")
	switch {
	case s.Redis == "":
		if (s.Kind == Redis || s.Kind == Hybrid) && k.role != ConsumerRole {
			k.bad(path, "store kind %s needs the server's address: redis: redis://127.0.0.1:6379/0", s.Kind)
		}
	case (base == "redis" || base == "rediss") && (fleet == "sentinel" || fleet == "cluster"):
		k.fleet(path, scheme, rest)
	default:
		k.address(path, s.Redis, "redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster")
	}
}

// fleet checks [user:password@]host[:port],…[/path] without showing any of it.
func (k *checker) fleet(path, scheme, rest string) {
	hosts, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		hosts, tail = rest[:end], rest[end:]
	}
	user := ""
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse(scheme + "://" + user + host + tail)
		if err != nil || u.Hostname() == "" {
			k.bad(path, "is not a list of hosts: write %s://user:password@host:port,host:port (special characters percent-escaped)", scheme)
			return
		}
		if strings.HasSuffix(scheme, "-sentinel") && strings.Trim(u.Path, "/") == "" {
			k.bad(path, "names no master: write %s://host:port,host:port/MASTER, as in \"sentinel monitor MASTER …\"", scheme)
			return
		}
	}
}

// adopt checks what older guards have left.
func (k *checker) adopt(s Store) {
	for _, name := range slices.Sorted(maps.Keys(s.Adopt)) {
		a, at := s.Adopt[name], "store.adopt."+name
		src := k.c.Sources[name]
		if src == nil && k.role.receives() {
			k.bad(at, "there is no source %s to take an older guard's keys over for", shown(name, false))
		}
		if k.oneOf(at+".kind", a.Kind, Redis, Postgres) {
			k.oldGuard(s, name, a, at)
		}
		if src != nil && src.OnStoreDown == "publish" {
			k.bad("sources."+name+".on_store_down", "publish does not go with store.adopt: only the store can tell what the older guard knows. Set reject, or leave it out")
		}
		if src != nil && slices.ContainsFunc(slices.Concat(src.Key, src.PreviousKeys), fromStripeSignature) {
			k.bad(at, "keys made from the header Stripe-Signature cannot be taken over: it is another one on each delivery, so they match nothing")
		}
	}
}

// oldGuard wants the older guard's keys where the store is.
func (k *checker) oldGuard(s Store, source string, a *Adopt, at string) {
	if a.Kind == Postgres {
		if s.Kind != Postgres && s.Kind != Hybrid {
			k.bad(at+".kind", "an older guard's rows can be read by store kinds postgres and hybrid only, in the same database")
		}
		if a.Prefix != "" {
			k.bad(at+".prefix", "is for Redis keys: name the table in its place")
		}
		for part := range strings.SplitSeq(a.Table, ".") {
			if !schemaRule.MatchString(part) {
				k.bad(at+".table", "%s cannot be a table's name: write table or schema.table, of a-z, 0-9 and _", shown(a.Table, false))
				break
			}
		}
		if len(a.Final) == 0 {
			k.bad(at+".final", "is needed: the statuses of rows that are done, like [ completed ]; of any other the state is unknown")
		}
		return
	}
	if s.Kind != Redis {
		k.bad(at+".kind", "an older guard's Redis keys can be read by store kind redis only, in the same Redis")
	}
	if a.Table != "" {
		k.bad(at+".table", "is for rows in Postgres: name the prefix of the Redis keys in its place")
	}
	if a.Prefix == "" {
		k.bad(at+".prefix", "is needed: what stands before the key in the older guard's names, like \"idem:%s:\"", source)
	}
}

func fromStripeSignature(recipe string) bool {
	return strings.Contains(strings.ToLower(recipe), "stripe-signature")
}
