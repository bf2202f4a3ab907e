package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Image is a Dockerfile to build and run on the network of this machine, so
// that it reaches private servers on loopback.
type Image struct {
	Context    string   // folder of the build context
	Dockerfile string   // path below Context
	Cmd        []string // arguments of its entry point
}

// Running is a container made from an [Image].
type Running struct {
	client client.APIClient
	c      testcontainers.Container
	image  string
}

// RunImage builds the image and starts a container of it; it does not wait for
// more than the start. [NotHere] tells whether an error only means that no
// engine of this machine answers.
func RunImage(ctx context.Context, i Image) (*Running, error) {
	p, err := provider(ctx)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("container engine: %w: it runs in a machine of its own, with another loopback", errNotHere)
	}
	req := testcontainers.ContainerRequest{
		FromDockerfile: testcontainers.FromDockerfile{Context: i.Context, Dockerfile: i.Dockerfile, KeepImage: true},
		Cmd:            i.Cmd,
		Labels:         map[string]string{ownerLabel: owner()},
		HostConfigModifier: func(hc *container.HostConfig) {
			hc.NetworkMode = "host"
		},
	}
	image, err := p.BuildImage(ctx, &req)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", i.Dockerfile, err)
	}
	req.Image, req.FromDockerfile = image, testcontainers.FromDockerfile{}
	r := &Running{client: p.Client(), image: image}
	if r.c, err = p.RunContainer(ctx, req); err != nil {
		return nil, errors.Join(fmt.Errorf("run %s: %w", i.Dockerfile, err), r.Close())
	}
	return r, nil
}

// NotHere says whether the error of [RunImage] means that there is no engine,
// not that something went wrong.
func NotHere(err error) bool { return errors.Is(err, errNotHere) }

// Output is what the container wrote so far.
func (r *Running) Output(ctx context.Context) string {
	logs, err := r.c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Close ends the container and removes it and its image.
func (r *Running) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if r.c != nil {
		_, err := r.client.ContainerRemove(ctx, r.c.GetContainerID(),
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		errs = append(errs, err)
	}
	_, err := r.client.ImageRemove(ctx, r.image, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	return errors.Join(append(errs, err)...)
}
