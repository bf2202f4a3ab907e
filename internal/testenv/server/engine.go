package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// EnvContainers says how far the engine is used: "auto" (default), "present"
// (only images that are there already: nothing is pulled) or "off".
const EnvContainers = "HOOKONCE_TEST_CONTAINERS"

const (
	// healthTimeout is how long an engine may take to say that it is there.
	healthTimeout = 5 * time.Second
	// reachTimeout is how long a registry may take to begin with an answer.
	reachTimeout = 8 * time.Second
	// pullTimeout bounds a pull that has begun.
	pullTimeout = 4 * time.Minute
)

// ownerLabel names the process a container belongs to.
const ownerLabel = "hookonce.testenv.owner"

// engine is the container engine of this machine, asked once a process.
var engine struct {
	sync.Mutex
	asked    bool
	provider *testcontainers.DockerProvider
	reason   error // why there is none
	noPull   error // why nothing is pulled any more
}

// provider returns the engine, or errNotHere with the reason.
func provider(ctx context.Context) (*testcontainers.DockerProvider, error) {
	engine.Lock()
	defer engine.Unlock()
	if !engine.asked {
		engine.asked = true
		engine.provider, engine.reason = connect(ctx)
	}
	if engine.reason != nil {
		return nil, fmt.Errorf("container engine: %w: %w", errNotHere, engine.reason)
	}
	return engine.provider, nil
}

// EngineAnswers says whether a container engine can be used, and why not.
func EngineAnswers(ctx context.Context) error {
	_, err := provider(ctx)
	return err
}

func connect(ctx context.Context) (*testcontainers.DockerProvider, error) {
	if os.Getenv(EnvContainers) == "off" {
		return nil, errors.New(EnvContainers + " is off")
	}
	// The reaper is one more image to pull; what a killed run leaves behind is
	// removed by the next one instead.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger())
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if _, err := p.Client().Ping(ctx, client.PingOptions{}); err != nil {
		_ = p.Close()
		return nil, err
	}
	removeOrphans(ctx, p.Client())
	return p, nil
}

// CloseEngine closes the connections to the engine; no container may be used
// after it.
func CloseEngine() error {
	engine.Lock()
	defer engine.Unlock()
	p := engine.provider
	engine.asked, engine.provider, engine.reason = false, nil, nil
	if p == nil {
		return nil
	}
	return p.Close()
}

func owner() string {
	host, _ := os.Hostname()
	return host + "/" + strconv.Itoa(os.Getpid())
}

// removeOrphans removes the containers of processes that are gone.
func removeOrphans(ctx context.Context, c client.APIClient) {
	list, err := c.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", ownerLabel),
	})
	if err != nil {
		return
	}
	host, _ := os.Hostname()
	for _, item := range list.Items {
		pid, mine := strings.CutPrefix(item.Labels[ownerLabel], host+"/")
		if n, err := strconv.Atoi(pid); mine && err == nil && !alive(n) {
			_, _ = c.ContainerRemove(ctx, item.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
}

// haveImage makes sure that the image is there, or says errNotHere within
// seconds: a registry that does not begin to answer is not waited for, and
// after one failure nothing more is pulled in this process.
func haveImage(ctx context.Context, c client.APIClient, image string) error {
	if _, err := c.ImageInspect(ctx, image); err == nil {
		return nil
	}
	engine.Lock()
	defer engine.Unlock()
	if os.Getenv(EnvContainers) == "present" {
		return fmt.Errorf("image %s: %w: %s is present", image, errNotHere, EnvContainers)
	}
	if engine.noPull != nil {
		return fmt.Errorf("image %s: %w: an earlier pull failed: %w", image, errNotHere, engine.noPull)
	}
	if err := pull(ctx, c, image); err != nil {
		engine.noPull = err
		return fmt.Errorf("image %s: %w: pull: %w", image, errNotHere, err)
	}
	return nil
}

func pull(ctx context.Context, c client.APIClient, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	silence := time.AfterFunc(reachTimeout, cancel)
	defer silence.Stop()
	answer, err := c.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	defer answer.Close()
	silence.Stop()
	return answer.Wait(ctx)
}

// PullFailed says whether a pull failed in this process, so that a caller can
// spare its children the same wait through EnvContainers.
func PullFailed() bool {
	engine.Lock()
	defer engine.Unlock()
	return engine.noPull != nil
}
