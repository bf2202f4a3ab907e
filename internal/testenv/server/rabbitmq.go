package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// rabbitPorts are the ports of one node.
type rabbitPorts struct{ amqp, dist, epmd, api lease }

func localRabbitMQ(context.Context) (*Server, *local, error) {
	// The script in /usr/sbin would change the user and the folders: the real
	// one lies below lib.
	program, err := find(nil, "/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server",
		"/opt/rabbitmq/sbin/rabbitmq-server", "/usr/local/sbin/rabbitmq-server")
	if err != nil {
		return nil, nil, err
	}
	epmd, err := find([]string{"epmd"}, "/usr/lib/erlang/erts-*/bin/epmd", "/usr/lib/erlang/bin/epmd")
	if err != nil {
		return nil, nil, err
	}
	got, release, err := leases(4)
	if err != nil {
		return nil, nil, err
	}
	ports := rabbitPorts{amqp: got[0], dist: got[1], epmd: got[2], api: got[3]}
	dir, err := tempDir(RabbitMQ)
	if err != nil {
		release()
		return nil, nil, err
	}
	s := &Server{
		URL:  "amqp://guest:guest@127.0.0.1:" + ports.amqp.String() + "/",
		API:  "http://guest:guest@127.0.0.1:" + ports.api.String(),
		From: "private process (" + program + ")",
	}
	l := &local{
		dir:     dir,
		command: func() *exec.Cmd { return rabbitCommand(program, dir, ports) },
		ready:   func(ctx context.Context) error { return rabbitAnswers(ctx, "127.0.0.1:"+ports.amqp.String(), s.API) },
		soft:    syscall.SIGTERM,
		cleanup: []func(){release},
		ctl: func(ctx context.Context, args []string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), "rabbitmqctl"), args...)
			cmd.Env = rabbitEnv(dir, ports)
			return cmd
		},
	}
	mapper, err := prepareRabbit(dir, epmd, ports)
	if err != nil {
		_ = l.remove()
		return nil, nil, err
	}
	l.cleanup = append(l.cleanup, mapper.kill)
	return s, l, nil
}

// prepareRabbit writes the node's files and starts its port mapper in the
// foreground: Erlang would otherwise leave one behind as a daemon.
func prepareRabbit(dir, epmd string, p rabbitPorts) (*process, error) {
	files := map[string]string{
		".erlang.cookie":  "HOOKONCETESTCOOKIE",
		"enabled_plugins": "[rabbitmq_management].\n",
		"rabbitmq.conf": strings.Join([]string{
			"listeners.tcp.1 = 127.0.0.1:" + p.amqp.String(),
			"distribution.listener.interface = 127.0.0.1",
			"distribution.listener.port_range.min = " + p.dist.String(),
			"distribution.listener.port_range.max = " + p.dist.String(),
			"management.tcp.ip = 127.0.0.1",
			"management.tcp.port = " + p.api.String(),
			"disk_free_limit.absolute = 50MB",
			"log.console = false",
			"",
		}, "\n"),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o400); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	cmd := exec.Command(epmd, "-port", p.epmd.String(), "-address", "127.0.0.1")
	cmd.SysProcAttr = attributes(nil)
	cmd.Dir = dir
	return spawn(cmd)
}

// rabbitCommand runs the node. RUNNING_UNDER_SYSTEMD makes the script exec the
// Erlang machine, so that signals reach the broker itself.
func rabbitCommand(program, dir string, p rabbitPorts) *exec.Cmd {
	cmd := exec.Command(program)
	cmd.Env = rabbitEnv(dir, p)
	return cmd
}

// rabbitEnv tells the node, and its control program, where everything is.
func rabbitEnv(dir string, p rabbitPorts) []string {
	return append(withoutPrefix(os.Environ(), "RABBITMQ_", "ERL_", "HOME="),
		"HOME="+dir,
		"ERL_EPMD_PORT="+p.epmd.String(),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RUNNING_UNDER_SYSTEMD=true",
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_NODENAME=hookonce@localhost",
		"RABBITMQ_NODE_PORT="+p.amqp.String(),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_DIST_PORT="+p.dist.String(),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"),
		"RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+filepath.Join(dir, "config"),
		// Schedulers that spin while idle would take the processors from the tests.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+sbwt none +sbwtdcpu none +sbwtdio none",
	)
}

func withoutPrefix(env []string, prefixes ...string) []string {
	var kept []string
next:
	for _, e := range env {
		for _, p := range prefixes {
			if strings.HasPrefix(e, p) {
				continue next
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// rabbitAnswers is nil once AMQP clients are greeted and the management API
// serves.
func rabbitAnswers(ctx context.Context, address, api string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return err
	}
	if first[0] != 1 {
		return errors.New("no AMQP 0-9-1 greeting")
	}
	return apiAnswers(ctx, api)
}

func apiAnswers(ctx context.Context, api string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/api/vhosts", http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("management API answers %s", res.Status)
	}
	return nil
}
