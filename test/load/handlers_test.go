package load_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

// kinds are the servers by the name in setup.Kind.
var kinds = map[string]func(context.Context, *served, setup) error{
	"bare": serveBare, "hmac": serveHMAC, "usual": serveUsual, "receiver": serveReceiver,
	"fill": serveFill, "drain": serveDrain, "raw": serveRaw,
	"consume": serveConsume, "consume-raw": serveConsumeRaw,
}

func ginWith(handler gin.HandlerFunc) http.Handler {
	engine := gin.New()
	engine.POST(sourcePath, handler)
	return engine
}

// serveBare reads the body and answers: what every row is compared with.
func serveBare(_ context.Context, s *served, _ setup) error {
	s.handler = ginWith(func(c *gin.Context) {
		if _, err := io.ReadAll(c.Request.Body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Status(http.StatusOK)
	})
	return nil
}

// signed reads the body of a request with a valid signature.
func signed(c *gin.Context) ([]byte, bool) {
	data, err := io.ReadAll(c.Request.Body)
	if err != nil {
		c.Status(http.StatusBadRequest)
		return nil, false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(data)
	got, err := hex.DecodeString(c.GetHeader("X-Signature"))
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		c.Status(http.StatusUnauthorized)
		return nil, false
	}
	return data, true
}

// serveHMAC verifies the signature too.
func serveHMAC(_ context.Context, s *served, _ setup) error {
	s.handler = ginWith(func(c *gin.Context) {
		if _, ok := signed(c); ok {
			c.Status(http.StatusOK)
		}
	})
	return nil
}

const usualQueue = "load.usual"

// serveUsual is the code that many write: SETNX, then a publish with confirm
// under a lock, because a channel is not for several goroutines at once.
func serveUsual(ctx context.Context, s *served, set setup) error {
	options, err := redis.ParseURL(set.Redis)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	s.onClose(client.Close)
	if err := prepareRedis(ctx, set); err != nil {
		return err
	}
	ch, err := openQueue(s, set.AMQP, usualQueue)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	publish := func(ctx context.Context, data []byte) error {
		lock.Lock()
		defer lock.Unlock()
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", usualQueue, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: data})
		if err != nil {
			return err
		}
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			return errors.Join(err, errors.New("not confirmed"))
		}
		return nil
	}
	s.handler = ginWith(func(c *gin.Context) {
		data, ok := signed(c)
		if !ok {
			return
		}
		fresh, err := client.SetNX(c, "usual:"+c.GetHeader("Idempotency-Key"), 1, 45*24*time.Hour).Result()
		if err == nil && fresh {
			err = publish(c, data)
		}
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		c.Status(http.StatusOK)
	})
	s.commands["empty"] = func(context.Context) (string, error) { return "ok", nil }
	return nil
}

// openQueue opens a channel in confirm mode and an empty quorum queue.
func openQueue(s *served, url, name string) (*amqp.Channel, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	s.onClose(conn.Close)
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if _, err := ch.QueueDelete(name, false, false, false); err != nil {
		return nil, err
	}
	_, err = ch.QueueDeclare(name, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	return ch, errors.Join(err, ch.Confirm(false))
}
