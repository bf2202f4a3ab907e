package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// recipe is how one kind runs in a container.
type recipe struct {
	variable string // overrides the image
	image    string
	env      map[string]string
	cmd      []string
	ports    []string // inside; the first is the one of the URL
	stop     string   // signal of an orderly stop
	ctl      string   // control program; "" when there is none
	// urls makes URL and API from the addresses of ports, in their order.
	urls  func(at []string) (url, api string)
	ready func(ctx context.Context, at []string, url, api string) error
}

var recipes = map[Kind]recipe{
	Redis: {
		variable: "HOOKONCE_TEST_REDIS_IMAGE", image: "redis:8",
		cmd:   append([]string{"redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"}, redisFlags...),
		ports: []string{"6379/tcp"}, stop: "SIGTERM",
		urls:  func(at []string) (string, string) { return "redis://" + at[0] + "/0", "" },
		ready: func(ctx context.Context, at []string, _, _ string) error { return redisAnswers(ctx, at[0]) },
	},
	Postgres: {
		variable: "HOOKONCE_TEST_POSTGRES_IMAGE", image: "postgres:17",
		env:   map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust"},
		cmd:   append([]string{"postgres"}, postgresFlags...),
		ports: []string{"5432/tcp"}, stop: "SIGINT",
		urls: func(at []string) (string, string) {
			return "postgres://postgres@" + at[0] + "/postgres?sslmode=disable", ""
		},
		ready: func(ctx context.Context, _ []string, url, _ string) error { return postgresAnswers(ctx, url) },
	},
	RabbitMQ: {
		variable: "HOOKONCE_TEST_RABBITMQ_IMAGE", image: "rabbitmq:4-management",
		// guest may connect from the container itself only.
		env:   map[string]string{"RABBITMQ_DEFAULT_USER": "hookonce", "RABBITMQ_DEFAULT_PASS": "hookonce"},
		ports: []string{"5672/tcp", "15672/tcp"}, stop: "SIGTERM", ctl: "rabbitmqctl",
		urls: func(at []string) (string, string) {
			return "amqp://hookonce:hookonce@" + at[0] + "/", "http://hookonce:hookonce@" + at[1]
		},
		ready: func(ctx context.Context, at []string, _, api string) error { return rabbitAnswers(ctx, at[0], api) },
	},
}

// inContainer is a private server in a container.
type inContainer struct {
	client client.APIClient
	id     string
	recipe recipe
	ports  []lease
	// hosts may reach the engine's published ports; the first that answers is
	// the only one afterwards.
	hosts    []string
	url, api string
	giveBack func() // the ports
}

// openContainer runs the kind's image. Everything that goes wrong here lets the
// next source try: an engine that answers but cannot run it is as good as none.
func openContainer(ctx context.Context, kind Kind) (*Server, error) {
	p, err := provider(ctx)
	if err != nil {
		return nil, err
	}
	r := recipes[kind]
	image := r.image
	if other := os.Getenv(r.variable); other != "" {
		image = other
	}
	if err := haveImage(ctx, p.Client(), image); err != nil {
		return nil, err
	}
	s, err := runContainer(ctx, p, image, r)
	if err != nil {
		return nil, fmt.Errorf("container of %s: %w: %w", image, errNotHere, err)
	}
	return s, nil
}

func runContainer(ctx context.Context, p *testcontainers.DockerProvider, image string, r recipe) (*Server, error) {
	hosts, address, err := reachable(ctx, p)
	if err != nil {
		return nil, err
	}
	ports, release, err := leases(len(r.ports))
	if err != nil {
		return nil, err
	}
	b := &inContainer{client: p.Client(), recipe: r, ports: ports, hosts: hosts, giveBack: release}
	// The ports outside are fixed, so that they are the same after a restart.
	bindings := network.PortMap{}
	for i, inside := range r.ports {
		bindings[network.MustParsePort(inside)] = []network.PortBinding{{HostIP: address, HostPort: ports[i].String()}}
	}
	c, err := p.RunContainer(ctx, testcontainers.ContainerRequest{
		Image: image, Env: r.env, Cmd: r.cmd, ExposedPorts: r.ports,
		Labels:             map[string]string{ownerLabel: owner()},
		HostConfigModifier: func(hc *container.HostConfig) { hc.PortBindings = bindings },
	})
	if c != nil {
		b.id = c.GetContainerID()
	}
	if err == nil {
		err = b.wait(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return &Server{URL: b.url, API: b.api, From: "container (" + image + ")", backend: b}, nil
}

// reachable returns the hosts where published ports may be found and the
// address to publish them on. The library's answer is a guess where this
// process looks as if it ran in a container itself; then loopback is tried too.
func reachable(ctx context.Context, p *testcontainers.DockerProvider) ([]string, netip.Addr, error) {
	host, err := p.DaemonHost(ctx)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	if host == "localhost" || host == "127.0.0.1" {
		return []string{"127.0.0.1"}, netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return []string{"127.0.0.1", host}, netip.IPv4Unspecified(), nil
}

func (b *inContainer) start(ctx context.Context) error {
	if _, err := b.client.ContainerStart(ctx, b.id, client.ContainerStartOptions{}); err != nil {
		return err
	}
	return b.wait(ctx)
}

func (b *inContainer) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := b.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it did not answer: %w", err)
		}
	}
}

// answers asks on every host and keeps the one that answered.
func (b *inContainer) answers(ctx context.Context) error {
	var reasons []error
	for _, host := range b.hosts {
		at := make([]string, len(b.ports))
		for i, port := range b.ports {
			at[i] = net.JoinHostPort(host, port.String())
		}
		url, api := b.recipe.urls(at)
		if err := b.recipe.ready(ctx, at, url, api); err != nil {
			reasons = append(reasons, err)
			continue
		}
		b.hosts, b.url, b.api = []string{host}, url, api
		return nil
	}
	return errors.Join(reasons...)
}

func (b *inContainer) kill(ctx context.Context) error { return b.end(ctx, "SIGKILL") }

func (b *inContainer) stop(ctx context.Context) error { return b.end(ctx, b.recipe.stop) }

func (b *inContainer) end(ctx context.Context, signal string) error {
	id := b.id
	if _, err := b.client.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal}); err != nil {
		return err
	}
	ended := b.client.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return err
	}
}

func (b *inContainer) remove() error {
	defer b.giveBack()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if b.id == "" {
		return nil
	}
	_, err := b.client.ContainerRemove(ctx, b.id,
		client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}
