package server

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// lease keeps a port for a server over its restarts. The port itself is free
// while the server is down; what is held is a name that every process of this
// package asks for first, and that ends with the process.
type lease struct {
	io.Closer
	port int
}

func (l lease) String() string { return strconv.Itoa(l.port) }

// reserve finds a free port below the range that the kernel gives to outgoing
// connections, so that none of those can sit on it while a server is down.
func reserve() (lease, error) {
	const low, high = 15000, 32000
	for range 200 {
		port := low + rand.IntN(high-low)
		name, err := net.Listen("unix", fmt.Sprintf("@hookonce-testenv-port-%d", port))
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = name.Close()
			continue
		}
		_ = probe.Close()
		return lease{Closer: name, port: port}, nil
	}
	return lease{}, errors.New("no free port on 127.0.0.1 between 15000 and 32000")
}

// leases reserves n ports; release gives them back.
func leases(n int) (ports []lease, release func(), err error) {
	release = func() {
		for _, p := range ports {
			_ = p.Close()
		}
	}
	for range n {
		p, err := reserve()
		if err != nil {
			release()
			return nil, nil, err
		}
		ports = append(ports, p)
	}
	return ports, release, nil
}
