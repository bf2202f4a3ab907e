package rabbit

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce/internal/wire"
)

// maxShort is the longest AMQP short string, in bytes.
const maxShort = 255

// maxHeaders is how many bytes all headers may take: they travel in one frame,
// of 128 KiB unless the broker is set to less.
const maxHeaders = 120 << 10

// checkMessage finds what AMQP cannot carry. The library would only notice
// between two frames, and give up the connection.
func checkMessage(exchange, key string, m wire.Message) error {
	for _, f := range []struct{ name, value string }{
		{"exchange", exchange},
		{"routing key", key},
		{"message_id", m.MessageID},
		{"type", m.Type},
		{"app_id", m.AppID},
		{"content_type", m.ContentType},
	} {
		if len(f.value) > maxShort {
			return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrRefused, f.name, len(f.value), maxShort)
		}
	}
	size := 0
	for name, value := range m.Headers {
		if len(name) > maxShort {
			return fmt.Errorf("%w: header name of %d bytes, at most %d", ErrRefused, len(name), maxShort)
		}
		size += len(name) + 16
		switch v := value.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	if size > maxHeaders {
		return fmt.Errorf("%w: headers of %d bytes, at most %d", ErrRefused, size, maxHeaders)
	}
	if err := amqp.Table(m.Headers).Validate(); err != nil {
		return fmt.Errorf("%w: headers: %w", ErrRefused, err)
	}
	return nil
}

func toPublishing(m wire.Message) amqp.Publishing {
	return amqp.Publishing{
		Headers:      m.Headers,
		ContentType:  m.ContentType,
		DeliveryMode: amqp.Persistent,
		MessageId:    m.MessageID,
		Timestamp:    m.Timestamp,
		Type:         m.Type,
		AppId:        m.AppID,
		Body:         m.Body,
	}
}

func fromDelivery(d amqp.Delivery) wire.Message {
	return wire.Message{
		MessageID:   d.MessageId,
		Type:        d.Type,
		AppID:       d.AppId,
		ContentType: d.ContentType,
		Timestamp:   d.Timestamp,
		Headers:     d.Headers,
		Body:        d.Body,
	}
}
