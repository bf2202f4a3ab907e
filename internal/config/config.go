package config

import "time"

// Config is the whole configuration file with its defaults filled in. Field
// comments give the YAML name, meaning and default; see deploy/examples.
type Config struct {
	DataDir  string   `yaml:"data_dir"` // SQLite files of the embedded store, queue and inbox; ./hookonce-data
	Receiver Receiver `yaml:"receiver"`
	Admin    Admin    `yaml:"admin"`
	Store    Store    `yaml:"store"`
	Broker   Broker   `yaml:"broker"`
	Inbox    Inbox    `yaml:"inbox"`
	Audit    Audit    `yaml:"audit"`

	Sources   map[string]*Source `yaml:"sources"`
	Consumers map[string]*Group  `yaml:"consumers"`

	StartupTimeout  time.Duration `yaml:"startup_timeout"`  // how long a role waits for its store or inbox; 30s
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"` // how long SIGTERM may drain; 25s

	// FirstRun is true when neither sources nor consumers are configured: the
	// demo source, consumer and table are then in place.
	FirstRun bool `yaml:"-"`
	// Dir is the folder of the configuration file: template files are relative to it.
	Dir string `yaml:"-"`
	// Warnings are what may be meant but rarely is, one line each, ready for the log.
	Warnings []string `yaml:"-"`
}

// Receiver is the hooks side. The two listeners are its own.
type Receiver struct {
	Listen         string   `yaml:"listen"`       // POST /hooks/<source>; 127.0.0.1:8080
	AdminListen    string   `yaml:"admin_listen"` // /metrics /healthz /readyz of the role receiver; 127.0.0.1:8082
	MaxBody        Size     `yaml:"max_body"`     // 1MiB; at most 16MiB, the broker's own limit from RabbitMQ 4.0
	PublicURL      string   `yaml:"public_url"`   // for providers that sign the URL
	TrustedProxies []string `yaml:"trusted_proxies"`
	TLS            TLS      `yaml:"tls"`
}

// TLS names the certificate and key files of a listener; both or none.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Admin is the listener of console, API, metrics and health.
type Admin struct {
	Listen string `yaml:"listen"` // 127.0.0.1:8081
	Token  Secret `yaml:"token"`  // needed when Listen is not loopback
}

// Store kinds, broker kinds, inbox kinds.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	Redis    = "redis"
	Hybrid   = "hybrid"
	Embedded = "embedded"
	RabbitMQ = "rabbitmq"
	None     = "none"
)

// Store is where keys are claimed and the outbox lives.
type Store struct {
	Kind           string        `yaml:"kind"` // sqlite
	Redis          Secret        `yaml:"redis"`
	RedisWait      int           `yaml:"redis_wait"` // replicas that must have a claim before the answer; 0
	Postgres       Secret        `yaml:"postgres"`
	Schema         string        `yaml:"schema"`           // Postgres schema; hookonce
	Lease          time.Duration `yaml:"lease"`            // 10s
	ClaimTTL       time.Duration `yaml:"claim_ttl"`        // 45d
	MaxOutbox      int64         `yaml:"max_outbox"`       // 1000000
	MaxOutboxBytes Size          `yaml:"max_outbox_bytes"` // 2GiB; 512MiB for redis
	// Adopt is what older guards have left, by source.
	Adopt map[string]*Adopt `yaml:"adopt"`
}

// Adopt is what an older guard of a source has left where the store is: in
// Redis a value under prefix + key, in Postgres (and hybrid) a row of table by
// source and idempotency_key. A value that is a stored response (a JSON object
// with a 2xx status), and a value or status in Final, count as a known
// delivery; of any other the state is unknown.
type Adopt struct {
	Kind   string   `yaml:"kind"`   // redis | postgres
	Prefix string   `yaml:"prefix"` // redis: like "idem:orders:"
	Table  string   `yaml:"table"`  // postgres: webhook_event_locks
	Final  []string `yaml:"final"`  // like [ done, completed ]
}

// Broker carries events from receivers to consumers.
type Broker struct {
	Kind     string     `yaml:"kind"`     // embedded
	URL      SecretList `yaml:"url"`      // one or a list, needed for rabbitmq
	Topology string     `yaml:"topology"` // declare (default) | verify | assume
	TLS      BrokerTLS  `yaml:"tls"`      // for amqps:// URLs
}

// BrokerTLS names files: the authorities that vouch for the broker (empty: the
// system's), and our own certificate with its key, both or none.
type BrokerTLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Inbox is the consumers' database.
type Inbox struct {
	Kind     string        `yaml:"kind"` // sqlite
	Postgres Secret        `yaml:"postgres"`
	SQLite   string        `yaml:"sqlite"` // <data_dir>/inbox.db; demo.db in the first run
	Schema   string        `yaml:"schema"` // Postgres schema; hookonce
	Lease    time.Duration `yaml:"lease"`  // 15s
	TTL      time.Duration `yaml:"ttl"`    // 45d
}

// Audit is where deliveries are noted. Not built yet: the values are checked only.
type Audit struct {
	Kind      string        `yaml:"kind"`
	DSN       Secret        `yaml:"dsn"`
	Retention time.Duration `yaml:"retention"` // 90d
}

// Source is one webhook endpoint.
type Source struct {
	Name          string         `yaml:"-"`
	Provider      string         `yaml:"provider"` // generic
	Verify        Verify         `yaml:"verify"`
	Secrets       []SourceSecret `yaml:"secrets"`
	AllowIPs      []string       `yaml:"allow_ips"` // addresses and networks that may deliver; all
	Key           []string       `yaml:"key"`
	PreviousKeys  []string       `yaml:"previous_keys"`
	AcceptRekey   bool           `yaml:"accept_rekey"` // start with another key recipe than before; false
	Body          BodyKey        `yaml:"body"`
	Dedup         string         `yaml:"dedup"` // key | none: every delivery is an event of its own
	Type          TypeRule       `yaml:"type"`
	Entity        string         `yaml:"entity"`
	Version       string         `yaml:"version"`
	Respond       Respond        `yaml:"respond"`
	Accept        []string       `yaml:"accept"`
	Ignore        []string       `yaml:"ignore"`     // types that are answered and forgotten
	Schema        string         `yaml:"schema"`     // file of a JSON Schema that bodies must match
	OnInvalid     string         `yaml:"on_invalid"` // reject | park
	MaxItems      int            `yaml:"max_items"`  // events in one request; 10000
	Path          string         `yaml:"path"`       // /hooks/<name>
	Retention     time.Duration  `yaml:"retention"`
	KeepHeaders   []string       `yaml:"keep_headers"`
	OnNoKey       string         `yaml:"on_no_key"`       // reject | park
	Unmatched     string         `yaml:"unmatched"`       // keep | drop
	OnStoreDown   string         `yaml:"on_store_down"`   // publish | reject
	OnChangedBody string         `yaml:"on_changed_body"` // accept | reject
	Ack           string         `yaml:"ack"`             // claim | confirm
	// SchemaText is what the file Schema holds.
	SchemaText []byte `yaml:"-"`
	// Line is where the source starts in the file; 0 when built in.
	Line int `yaml:"-"`
}

// Verify is how deliveries prove themselves, where the provider's own way is
// not meant. In YAML also the plain word "none".
type Verify struct {
	Scheme         string        `yaml:"scheme"` // empty: the provider's own; see provider.Generic for the others
	Header         string        `yaml:"header"`
	Encoding       string        `yaml:"encoding"`        // hex | base64 | base64url
	Prefix         string        `yaml:"prefix"`          // stripped before decoding, required when set
	Signed         string        `yaml:"signed"`          // template of what is signed; {body}
	Timestamp      string        `yaml:"timestamp"`       // header with the signed time
	Over           string        `yaml:"over"`            // decoded | wire: which body is signed when it is compressed
	SecretEncoding string        `yaml:"secret_encoding"` // text | hex | base64
	Tolerance      time.Duration `yaml:"tolerance"`       // for schemes with a timestamp; the provider's, else 5m
	Keys           []string      `yaml:"keys"`            // public keys of the provider, instead of its list
	KeysURL        string        `yaml:"keys_url"`        // where the provider publishes its keys
	ID             string        `yaml:"id"`              // PayPal's webhook id, Woovi's company id
	Token          Secret        `yaml:"token"`           // what Meta's handshake names
}

// BodyKey tunes the key alternative "body".
type BodyKey struct {
	Canonical bool          `yaml:"canonical"`
	Ignore    []string      `yaml:"ignore"`
	Window    time.Duration `yaml:"window"` // 10m
}

// TypeRule is where the event type comes from: in YAML a recipe ("json:event"),
// a constant ("=order.paid"), or {from, map}.
type TypeRule struct {
	From string            `yaml:"from"`
	Map  map[string]string `yaml:"map"`
}

// Respond is the success answer.
type Respond struct {
	Status int    `yaml:"status"` // 200
	Body   string `yaml:"body"`
}

// Group is one consumer group: one queue, one list of effects.
type Group struct {
	Name        string    `yaml:"-"`
	Match       []string  `yaml:"match"`
	Concurrency int       `yaml:"concurrency"` // 16
	Prefetch    int       `yaml:"prefetch"`    // 64
	Retry       Retry     `yaml:"retry"`
	Effects     []*Effect `yaml:"effects"`
	Line        int       `yaml:"-"`
}

// Retry is how failures are repeated.
type Retry struct {
	MaxAttempts int           `yaml:"max_attempts"` // 12
	First       time.Duration `yaml:"first"`        // 1s
	Max         time.Duration `yaml:"max"`          // 10m
	MaxCrashes  int           `yaml:"max_crashes"`  // 5
}
