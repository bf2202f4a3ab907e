package hookonce

import "errors"

var (
	// ErrUnknown says that a store did not answer, or not intelligibly: whether
	// the key is claimed is unknown. It never means "not claimed".
	ErrUnknown = errors.New("claim state unknown")
	// ErrInvalid says that the data of this one event is refused, now and on
	// any further try.
	ErrInvalid = errors.New("event refused")
	// ErrOutboxFull says that the outbox has reached its bound in count or
	// bytes; nothing was claimed.
	ErrOutboxFull = errors.New("outbox full")
)
