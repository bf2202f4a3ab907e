package serve_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/serve"
)

type order struct {
	ID    string `json:"order_id"`
	Email string `json:"email"`
}

// A program of your own, with files in place of RabbitMQ and Postgres: an order
// that is delivered twice has one ticket and one mail.
func Example() {
	dir, err := os.MkdirTemp("", "hookonce-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder

	mailed := make(chan string, 10)
	issueTicket := func(ctx context.Context, e hookonce.Event, o order) error {
		d := consumer.FromContext(ctx)
		err := d.StepTx(ctx, "ticket", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "insert into tickets (order_id) values ($1)", o.ID)
			return err
		})
		if err != nil {
			return err
		}
		return d.Step(ctx, "mail", func(_ context.Context, t consumer.Try) error {
			mailed <- fmt.Sprintf("to %s, Idempotency-Key %s", o.Email, t.Key)
			return nil
		})
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	service, err := serve.Open(ctx, serve.Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler),
		Groups: []consumer.Group{{
			Name:     "tickets",
			Handlers: []consumer.Route{consumer.Handle("shop.order.paid", issueTicket)},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.Close() //nolint:errcheck // the process ends
	if _, err := service.DB().Exec("create table tickets (order_id text not null)"); err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()

	for _, id := range []string{"A-1", "A-1", "A-2"} {
		err := service.Publish(ctx, hookonce.Event{
			Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid",
			Body: []byte(`{"order_id":"` + id + `","email":"ana@example.com"}`),
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(<-mailed)
	fmt.Println(<-mailed)
	stop()
	fmt.Println("end:", <-done, len(mailed))
	var tickets int
	if err := service.DB().QueryRow("select count(*) from tickets").Scan(&tickets); err != nil {
		fmt.Println(err)
	}
	fmt.Println("tickets:", tickets)
	// Unordered output:
	// to ana@example.com, Idempotency-Key shop/A-1/tickets/mail
	// to ana@example.com, Idempotency-Key shop/A-2/tickets/mail
	// end: <nil> 0
	// tickets: 2
}
