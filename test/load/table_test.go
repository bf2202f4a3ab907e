package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// plan is how much is measured.
type plan struct {
	rounds       int
	length, warm time.Duration
	conns        int
}

// measured is one round of one row.
type measured struct {
	rate, ratio, cpu float64 // requests a second; to the bare handler; seconds a request
	p50, p99         time.Duration
}

// table measures the rows in turns and prints their medians.
func table(ctx context.Context, w io.Writer, s *servers, rows []row, p plan) error {
	all := make([][]measured, len(rows))
	for round := range p.rounds {
		rates := map[string]float64{}
		for i, r := range rows {
			if r.halfOf != "" && rates[r.halfOf] == 0 {
				return fmt.Errorf("row %q needs row %q", r.name, r.halfOf)
			}
			progress("round %d of %d: %s", round+1, p.rounds, r.name)
			m, err := measure(ctx, s, r, p, rates[r.halfOf]/2)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if r.halfOf == "" {
				rates[r.name] = m.rate
			}
			m.ratio = m.rate / rates[bareName]
			all[i] = append(all[i], m)
		}
	}
	progress("")
	return print(w, rows, all, p)
}

// measure starts a row's server and sends to it.
func measure(ctx context.Context, s *servers, r row, p plan, rate float64) (m measured, err error) {
	set, err := s.complete(r.set)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(set.Dir)) }()
	c, err := startChild(ctx, set)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	g, err := dialGenerator(ctx, c.addr, p.conns, r.duplicates)
	if err != nil {
		return m, err
	}
	defer g.close()
	if _, err := g.run(p.warm, rate); err != nil {
		return m, err
	}
	if err := r.settle(c); err != nil {
		return m, err
	}
	if *flagProfile != "" {
		if _, err := c.ask("profile " + profileFile(r.name)); err != nil {
			return m, err
		}
	}
	return r.measure(c, g, p, rate)
}

// settle waits until the outbox is empty, in the rows that publish.
func (r row) settle(c *child) error {
	if !r.set.Broker {
		return nil
	}
	_, err := c.ask("empty")
	return err
}

// measure sends for the plan's time to a server that is warm.
func (r row) measure(c *child, g *generator, p plan, rate float64) (measured, error) {
	before, err := c.number("cpu")
	if err != nil {
		return measured{}, err
	}
	start := time.Now()
	got, err := g.run(p.length, rate)
	if err != nil {
		return measured{}, err
	}
	if r.confirmed {
		if err := r.settle(c); err != nil {
			return measured{}, err
		}
		got.elapsed = time.Since(start)
	}
	after, err := c.number("cpu")
	if err != nil {
		return measured{}, err
	}
	if *flagProfile != "" {
		if _, err := c.ask("endprofile"); err != nil {
			return measured{}, err
		}
	}
	known := got.requests
	if !r.duplicates {
		known = 0
	}
	if got.requests == 0 || got.replayed != known {
		return measured{}, fmt.Errorf("%d of %d answers are a duplicate's, not %d", got.replayed, got.requests, known)
	}
	return measured{rate: got.rate(), cpu: (after - before) / float64(got.requests), p50: got.quantile(.5), p99: got.quantile(.99)}, nil
}

func profileFile(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c == ' ' || c == ':' || c == '+' {
			return '_'
		}
		return c
	}, name)
	return filepath.Join(*flagProfile, clean+".pprof")
}

// print writes the table.
func print(w io.Writer, rows []row, all [][]measured, p plan) error {
	fmt.Fprintf(w, "median of %d rounds of %v; %d connections, bodies of %d bytes\n\n", p.rounds, p.length, p.conns, len(body))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "row\tpolicy\trequests/s\tof bare\tp50 ms\tp99 ms\tserver CPU µs\t")
	mid := make([]measured, len(rows))
	for i, r := range rows {
		m := medians(all[i])
		mid[i] = m
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.3f\t%.2f\t%.2f\t%.1f\t\n", r.name, r.policy, m.rate, m.ratio, ms(m.p50), ms(m.p99), m.cpu*1e6)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	find := func(name string) measured {
		if i := slices.IndexFunc(rows, func(r row) bool { return r.name == name }); i >= 0 {
			return mid[i]
		}
		return measured{}
	}
	if usual := find("the usual code"); usual.rate > 0 && find(wholeName).rate > 0 {
		fmt.Fprintf(w, "\nwhole path, redis everysec, to the usual code: %.1f times\n", find(wholeName).rate/usual.rate)
	}
	if half := find("half load: redis everysec"); half.rate > 0 {
		fmt.Fprintf(w, "added p99 at half load: %.2f ms\n", ms(half.p99-find("half load: "+bareName).p99))
	}
	return nil
}

func medians(all []measured) measured {
	pick := func(f func(measured) float64) float64 {
		values := make([]float64, len(all))
		for i, m := range all {
			values[i] = f(m)
		}
		slices.Sort(values)
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return measured{
		rate:  pick(func(m measured) float64 { return m.rate }),
		ratio: pick(func(m measured) float64 { return m.ratio }),
		cpu:   pick(func(m measured) float64 { return m.cpu }),
		p50:   time.Duration(pick(func(m measured) float64 { return float64(m.p50) })),
		p99:   time.Duration(pick(func(m measured) float64 { return float64(m.p99) })),
	}
}

// progress overwrites one line of a terminal; elsewhere it would only be noise.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r%-70s\r", fmt.Sprintf(format, args...))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
