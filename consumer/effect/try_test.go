package effect_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hookonce/hookonce/consumer"
)

// paid is a try of an event with a body.
func paid(body string) consumer.Try {
	e := event(body)
	e.ContentType = "application/json; charset=utf-8"
	return consumer.Try{
		Event: e, Group: "tickets", Step: "tell-crm", Key: "shop/A-1/tickets/tell-crm",
		Attempt: 2, MaxAttempts: 12, RetryIn: 1500 * time.Millisecond,
	}
}

// fate is how the consumer takes a step's error.
type fate struct {
	permanent, unknown bool
	after              time.Duration
}

var (
	retried   = fate{}
	permanent = fate{permanent: true}
	unknown   = fate{unknown: true}
)

// fateOf looks for the marks of an error, which the consumer keeps to itself.
func fateOf(t *testing.T, err error) fate {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	marks := map[string]error{
		"permanent": consumer.Permanent(err), "unknown": consumer.Unknown(err), "after": consumer.RetryAfter(err, 0),
	}
	var f fate
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch fmt.Sprintf("%T", e) {
		case fmt.Sprintf("%T", marks["permanent"]):
			f.permanent = true
		case fmt.Sprintf("%T", marks["unknown"]):
			f.unknown = true
		case fmt.Sprintf("%T", marks["after"]):
			f.after = time.Duration(reflect.ValueOf(e).Elem().FieldByName("after").Int())
		}
	}
	return f
}
