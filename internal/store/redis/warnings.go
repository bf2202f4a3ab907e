package redis

import (
	"context"
	"fmt"
	"strings"
)

// Warnings says, a line each, what this server's configuration may lose. It
// reads CONFIG, or INFO where that is forbidden; what it cannot read it says.
func (s *Store) Warnings(ctx context.Context) []string {
	var out []string
	aof, errAOF := s.setting(ctx, "appendonly", "persistence", "aof_enabled")
	switch {
	case errAOF != nil:
		out = append(out, fmt.Sprintf("redis: appendonly could not be read (%v): without it every restart of Redis forgets accepted events", errAOF))
	case aof != "yes" && aof != "1":
		out = append(out, "redis: appendonly is off: when Redis ends, accepted events that are not published yet are lost, and claims "+
			"since its last snapshot too, so that repeats are taken for new; set appendonly yes and appendfsync always")
	default:
		out = append(out, s.fsyncWarning(ctx)...)
	}
	policy, err := s.setting(ctx, "maxmemory-policy", "memory", "maxmemory_policy")
	switch {
	case err != nil:
		out = append(out, fmt.Sprintf("redis: maxmemory-policy could not be read (%v): with any but noeviction, Redis forgets claims when memory is short", err))
	case policy != "noeviction":
		out = append(out, fmt.Sprintf("redis: maxmemory-policy is %s: when memory is short, claims are evicted and repeats are taken for new; "+
			"set it to noeviction", policy))
	}
	return out
}

func (s *Store) fsyncWarning(ctx context.Context) []string {
	values, err := s.client.ConfigGet(ctx, "appendfsync").Result()
	switch fsync := values["appendfsync"]; {
	case err != nil || fsync == "":
		return []string{"redis: appendfsync could not be read (CONFIG is forbidden): with everysec a crash may lose about 2 s of accepted events"}
	case fsync == "everysec":
		return []string{"redis: appendfsync is everysec: a crash of the server may lose about 2 s of accepted events and claims; " +
			"set appendfsync always to lose none"}
	case fsync != "always":
		return []string{fmt.Sprintf("redis: appendfsync is %s: a crash of the machine may lose all accepted events that the system "+
			"has not written yet; set appendfsync always to lose none", fsync)}
	}
	return nil
}

// setting reads a setting by its CONFIG name, or as a field of an INFO section.
func (s *Store) setting(ctx context.Context, name, section, field string) (string, error) {
	values, err := s.client.ConfigGet(ctx, name).Result()
	if err == nil && values[name] != "" {
		return values[name], nil
	}
	info, infoErr := s.client.Info(ctx, section).Result()
	if infoErr != nil {
		if err == nil {
			err = infoErr
		}
		return "", err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return v, nil
		}
	}
	return "", fmt.Errorf("neither CONFIG nor INFO shows it")
}
