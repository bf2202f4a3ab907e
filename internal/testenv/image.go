package testenv

import (
	"context"
	"testing"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// RunImage builds a Dockerfile of the folder through testcontainers-go and runs
// it with the arguments on the network of this machine until the test ends. It
// returns false and logs why when no container engine answers: the test then
// checks the same without a container. Set HOOKONCE_TEST_CONTAINERS=off where
// an engine answers whose containers this machine cannot reach.
func RunImage(t testing.TB, folder, dockerfile string, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	running, err := server.RunImage(ctx, server.Image{Context: folder, Dockerfile: dockerfile, Cmd: args})
	if server.NotHere(err) {
		t.Logf("no container: %v", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("container: %s", running.Output(context.Background()))
		}
		if err := running.Close(); err != nil {
			t.Errorf("remove the container: %v", err)
		}
	})
	return true
}
