// Package telemetry holds what the parts report: the Prometheus collectors,
// the logger and the log keys. Nothing here is global: each process makes one
// [Metrics] and hands it down.
package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the collectors of one process. Labels are of bounded
// cardinality: names from the configuration and fixed words, never keys.
type Metrics struct {
	Deliveries     *prometheus.CounterVec   // source, outcome
	Receive        *prometheus.HistogramVec // source
	OldSecret      *prometheus.CounterVec   // source
	Claim          *prometheus.HistogramVec // store
	Published      *prometheus.CounterVec   // outcome
	OutboxEvents   prometheus.Gauge
	OutboxBytes    prometheus.Gauge
	OutboxSetAside prometheus.Gauge
	OutboxOldest   prometheus.Gauge
	Attempts       *prometheus.CounterVec   // group, outcome
	Retries        *prometheus.CounterVec   // group
	Dead           *prometheus.CounterVec   // group, reason
	DeadEvents     *prometheus.GaugeVec     // group
	Effect         *prometheus.HistogramVec // group, effect
	Event          *prometheus.HistogramVec // group
	StoreUp        *prometheus.GaugeVec     // store
	BrokerUp       prometheus.Gauge
}

// NewMetrics makes the collectors and registers them with r; nil registers
// them nowhere.
func NewMetrics(r prometheus.Registerer) *Metrics {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	f := factory{r}
	seconds := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	long := []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 1800, 7200, 43200, 172800}
	return &Metrics{
		Deliveries:     f.counters("hookonce_deliveries_total", "Deliveries answered, by outcome.", "source", "outcome"),
		Receive:        f.histograms("hookonce_receive_seconds", "Time from a request's first byte to its answer.", seconds, "source"),
		OldSecret:      f.counters("hookonce_old_secret_total", "Deliveries that a secret with an end has verified.", "source"),
		Claim:          f.histograms("hookonce_claim_seconds", "Time of one claim operation on the store (a batch of claims).", seconds, "store"),
		Published:      f.counters("hookonce_published_total", "Publishes to the broker, by outcome.", "outcome"),
		OutboxEvents:   f.gauge("hookonce_outbox_events", "Events in the outbox: accepted and not yet known to be published."),
		OutboxBytes:    f.gauge("hookonce_outbox_bytes", "Bytes of the bodies in the outbox."),
		OutboxSetAside: f.gauge("hookonce_outbox_set_aside", "Outbox entries that the broker refuses and that wait for a person."),
		OutboxOldest:   f.gauge("hookonce_outbox_oldest_seconds", "Age of the oldest outbox entry."),
		Attempts:       f.counters("hookonce_attempts_total", "Attempts to process an event, by outcome.", "group", "outcome"),
		Retries:        f.counters("hookonce_retries_total", "Attempts that failed and will be repeated.", "group"),
		Dead:           f.counters("hookonce_dead_total", "Events that became dead letters, by reason.", "group", "reason"),
		DeadEvents:     f.gauges("hookonce_dead_events", "Dead letters waiting for a person.", "group"),
		Effect:         f.histograms("hookonce_effect_seconds", "Time of one effect.", seconds, "group", "effect"),
		Event:          f.histograms("hookonce_event_seconds", "Time from received to done.", long, "group"),
		StoreUp:        f.gauges("hookonce_store_up", "1 while the store answers.", "store"),
		BrokerUp:       f.gauge("hookonce_broker_up", "1 while the broker connection stands."),
	}
}

type factory struct{ r prometheus.Registerer }

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(c)
	return c
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	c := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.r.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	c := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	f.r.MustRegister(c)
	return c
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	c := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.r.MustRegister(c)
	return c
}
