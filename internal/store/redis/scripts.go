package redis

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed claim.lua
var claimSource string

//go:embed look.lua
var lookSource string

//go:embed settle.lua
var settleSource string

//go:embed touch.lua
var touchSource string

//go:embed move.lua
var moveSource string

//go:embed first.lua
var firstSource string

// script is sent by its hash, and whole when the server has not seen it (after
// a restart or a fail-over).
type script struct{ source, hash string }

func newScript(source string) *script {
	return &script{source: source, hash: redis.NewScript(source).Hash()}
}

var (
	claimScript  = newScript(claimSource)
	lookScript   = newScript(lookSource)
	settleScript = newScript(settleSource)
	touchScript  = newScript(touchSource)
	moveScript   = newScript(moveSource)
	firstScript  = newScript(firstSource)
)
