package redis

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed claim.lua
var claimSource string

//go:embed settle.lua
var settleSource string

//go:embed touch.lua
var touchSource string

//go:embed move.lua
var moveSource string

//go:embed first.lua
var firstSource string

// The scripts are sent by their hash, and whole when the server has not seen
// them (after a restart).
var (
	claimScript  = redis.NewScript(claimSource)
	settleScript = redis.NewScript(settleSource)
	touchScript  = redis.NewScript(touchSource)
	moveScript   = redis.NewScript(moveSource)
	firstScript  = redis.NewScript(firstSource)
)
