package load_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testenv"
)

// The program's own flags.
var (
	flagTable   = flag.Bool("table", false, "print the table instead of running tests")
	flagDrain   = flag.Bool("drain", false, "drain a large outbox instead of running tests")
	flagConsume = flag.Bool("consume", false, "work off queues instead of running tests; -rows, -rounds, -events apply")
	flagRounds  = flag.Int("rounds", 5, "rounds of the table; it shows their medians")
	flagSeconds = flag.Float64("seconds", 3, "how long a round of a row is, after half a second of warming up")
	flagConns   = flag.Int("connections", 64, "connections, each with one request at a time")
	flagRows    = flag.String("rows", "", "measure only rows whose name matches; the bare handler always")
	flagEvents  = flag.Int("events", 1_000_000, "events in the outbox that is drained")
	flagProfile = flag.String("profile", "", "folder for a processor profile of every row's server")
)

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(envSetup); ok {
		os.Exit(serveChild(text))
	}
	flag.Parse()
	if !*flagTable && !*flagDrain && !*flagConsume {
		os.Exit(testenv.Run(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := program(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// program prints what the flags ask for.
func program(ctx context.Context) error {
	want, err := regexp.Compile(*flagRows)
	if err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	chosen := rows(func(r row) bool { return want.MatchString(r.name) })
	if *flagDrain {
		chosen = drains()
	}
	var consumers []consumption
	if *flagConsume {
		chosen = nil
		for i, c := range consumptions() {
			if i == 0 || want.MatchString(c.name) {
				consumers = append(consumers, c)
				chosen = append(chosen, row{name: c.name, set: c.set})
			}
		}
	}
	s, err := startServers(ctx, chosen)
	if err != nil {
		return err
	}
	defer s.close()
	if *flagDrain {
		return drainTable(ctx, s, *flagEvents)
	}
	if *flagConsume {
		return consumeTable(ctx, os.Stdout, s, consumers, *flagRounds, *flagEvents)
	}
	length := time.Duration(*flagSeconds * float64(time.Second))
	return table(ctx, os.Stdout, s, chosen, plan{rounds: *flagRounds, length: length, warm: 500 * time.Millisecond, conns: *flagConns})
}
