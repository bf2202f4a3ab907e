package server

import (
	"context"
	"fmt"
)

func openContainer(_ context.Context, kind Kind) (*Server, error) {
	return nil, fmt.Errorf("container: %w: no engine for %s", errNotHere, kind)
}
