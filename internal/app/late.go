package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/publisher"
)

const (
	// lookTimeout bounds the question whether the broker is there at all.
	lookTimeout = 5 * time.Second
	// openEvery is how often a store that is away is looked for.
	openEvery = time.Second
)

// upkeeper is a store that has work of its own to do all the time.
type upkeeper interface{ Run(ctx context.Context) }

// hopeless says that waiting does not mend what is wrong with a store.
func hopeless(err error) bool {
	var wrong usageError
	return errors.As(err, &wrong) || errors.Is(err, postgres.ErrSchema)
}

// opener opens the store of a receiver, once.
type opener func(ctx context.Context) (claimStore, error)

// awaitStore opens the store, and waits for it. When it does not answer within
// startup_timeout, a receiver that can publish without it starts all the same:
// with a stand-in, until the store is there.
func (s *system) awaitStore(ctx context.Context, open opener) (claimStore, error) {
	var store claimStore
	err := s.await(ctx, "store", func(ctx context.Context) (err error) {
		store, err = open(ctx)
		return err
	})
	if err == nil {
		s.onClose(store.Close)
		return store, nil
	}
	if ctx.Err() != nil || hopeless(err) || !s.publishesWithoutStore() {
		return nil, err
	}
	look, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if down := rabbit.Reach(look, s.rabbitConfig("hookonce receiver start")); down != nil {
		return nil, errors.Join(err, fmt.Errorf("nor is the broker there to publish past the store: %w", down))
	}
	s.log.Warn("starting without the store: events of sources on on_store_down: publish are published past it, others are answered 503", "err", err)
	late := &lateStore{}
	late.fail(err)
	s.onClose(late.Close)
	s.upkeep = append(s.upkeep, stage{"store", func(ctx context.Context) error { return s.heal(ctx, late, open) }})
	return late, nil
}

// publishesWithoutStore reports whether a source takes events while the store
// is down.
func (s *system) publishesWithoutStore() bool {
	for _, source := range s.cfg.Sources {
		if source.OnStoreDown == "publish" && len(source.PreviousKeys) == 0 && !slices.Contains(source.Key, "body") {
			return true
		}
	}
	return false
}

// heal puts the store in the stand-in's place as soon as it answers.
func (s *system) heal(ctx context.Context, late *lateStore, open opener) error {
	tick := time.NewTicker(openEvery)
	defer tick.Stop()
	for {
		store, err := open(ctx)
		if err == nil {
			err = s.settleIn(ctx, late, store)
		}
		switch {
		case err == nil:
			if u, ok := store.(upkeeper); ok {
				u.Run(ctx)
			}
			<-ctx.Done()
			return nil
		case hopeless(err):
			return err
		}
		late.fail(err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *system) settleIn(ctx context.Context, late *lateStore, store claimStore) error {
	if err := s.checkRecipes(ctx, store); err != nil {
		return errors.Join(err, store.Close())
	}
	late.store.Store(&store)
	s.log.Info("the store is there; events are claimed from now on")
	for _, w := range store.Warnings(ctx) {
		s.log.Warn(w)
	}
	return nil
}

// lateStore is a store that is not there yet. Until then the state of every
// claim is unknown.
type lateStore struct {
	store atomic.Pointer[claimStore]
	why   atomic.Pointer[error]
}

func (l *lateStore) fail(err error) { l.why.Store(&err) }

func (l *lateStore) get() (claimStore, error) {
	if store := l.store.Load(); store != nil {
		return *store, nil
	}
	return nil, fmt.Errorf("%w: %w", hookonce.ErrUnknown, *l.why.Load())
}

func (l *lateStore) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	store, err := l.get()
	if err != nil {
		return hookonce.Claimed{}, err
	}
	return store.ClaimOne(ctx, c)
}

// Claim is many claims in one operation, for requests that are split.
func (l *lateStore) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	store, err := l.get()
	if err != nil {
		return nil, err
	}
	return store.Claim(ctx, claims)
}

func (l *lateStore) Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	store, err := l.get()
	if err != nil {
		return nil, err
	}
	return store.Pending(ctx, after, n)
}

func (l *lateStore) Settle(ctx context.Context, entries []hookonce.Entry) error {
	store, err := l.get()
	if err != nil {
		return err
	}
	return store.Settle(ctx, entries)
}

func (l *lateStore) Adopt(ctx context.Context, n int) (int, error) {
	store, err := l.get()
	if err != nil {
		return 0, err
	}
	return store.Adopt(ctx, n)
}

func (l *lateStore) Stats(ctx context.Context) (publisher.OutboxStats, error) {
	store, err := l.get()
	if err != nil {
		return publisher.OutboxStats{}, err
	}
	return store.Stats(ctx)
}

func (l *lateStore) Recipe(ctx context.Context, source string) (string, error) {
	store, err := l.get()
	if err != nil {
		return "", err
	}
	return store.Recipe(ctx, source)
}

func (l *lateStore) SetRecipe(ctx context.Context, source, recipe string) error {
	store, err := l.get()
	if err != nil {
		return err
	}
	return store.SetRecipe(ctx, source, recipe)
}

func (l *lateStore) Ping(ctx context.Context) error {
	store, err := l.get()
	if err != nil {
		return err
	}
	return store.Ping(ctx)
}

// Warnings are told when the store is there.
func (l *lateStore) Warnings(context.Context) []string { return nil }

func (l *lateStore) Close() error {
	store, err := l.get()
	if err != nil {
		return nil // there is nothing to close
	}
	return store.Close()
}
