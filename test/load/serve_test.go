package load_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/hookonce/hookonce/receiver"
)

// served is what runs in a child.
type served struct {
	handler http.Handler
	// commands are what can be asked besides "cpu", "memory" and "profile".
	commands map[string]func(ctx context.Context) (string, error)
	close    []func() error // last first
}

func (s *served) onClose(f func() error) { s.close = append(s.close, f) }

// serveChild is the whole life of a child.
func serveChild(text string) (code int) {
	var set setup
	err := json.Unmarshal([]byte(text), &set)
	if err == nil {
		gin.SetMode(gin.ReleaseMode)
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
		err = serve(context.Background(), set)
	}
	if err != nil {
		fmt.Printf("error %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

func serve(ctx context.Context, set setup) (err error) {
	s := &served{commands: map[string]func(context.Context) (string, error){}}
	defer func() {
		for i := len(s.close) - 1; i >= 0; i-- {
			err = errors.Join(err, s.close[i]())
		}
	}()
	if err := kinds[set.Kind](ctx, s, set); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// The bare handlers get the same server, with its time limits.
	server := receiver.NewHTTPServer("", s.handler, slog.Default())
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	fmt.Println(l.Addr())
	s.answer(ctx, os.Stdin)
	err = server.Close()
	<-done
	return err
}

// answer answers commands until the parent closes the pipe.
func (s *served) answer(ctx context.Context, in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, argument, _ := strings.Cut(lines.Text(), " ")
		var text string
		var err error
		switch f, ok := s.commands[name]; {
		case ok:
			text, err = f(ctx)
		case name == "cpu":
			text = fmt.Sprint(processorTime().Seconds())
		case name == "memory":
			text = fmt.Sprint(peakMemory())
		case name == "profile":
			text, err = "ok", startProfile(argument)
		case name == "endprofile":
			pprof.StopCPUProfile()
			text = "ok"
		default:
			err = fmt.Errorf("no command %q", name)
		}
		if err != nil {
			text = "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Println(text)
	}
}

// startProfile profiles until endprofile; the file is complete then.
func startProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}
