package guarantee

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

var client = &http.Client{
	Timeout: 10 * time.Second,
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
	},
}

// answer is what a provider sees.
type answer struct {
	status   int
	body     string
	key      string
	replayed bool
}

// post delivers once.
func post(url, body string, header map[string]string) (answer, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{
		status: resp.StatusCode, body: string(b), key: resp.Header.Get("Hookonce-Key"),
		replayed: resp.Header.Get("Idempotent-Replayed") == "true",
	}, err
}

// mustPost delivers once and wants a success.
func mustPost(t *testing.T, url, body string, header map[string]string) answer {
	t.Helper()
	a, err := post(url, body, header)
	if err != nil || a.status/100 != 2 {
		t.Fatalf("POST %s: %+v, %v", url, a, err)
	}
	return a
}

// deliver does as a provider does: it sends until the answer is a success.
func deliver(t *testing.T, url, body string, header map[string]string) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		a, err := post(url, body, header)
		if err == nil && a.status/100 == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("POST %s was not accepted within 90 s: %+v, %v", url, a, err)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// load delivers every order at least once, 30 % of them twice, 16 at a time,
// and returns when all were accepted.
func load(t *testing.T, url string, orders []string) {
	t.Helper()
	queue := append([]string{}, orders...)
	for i, o := range orders {
		if i%10 < 3 {
			queue = append(queue, o)
		}
	}
	rand.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	work := make(chan string)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for o := range work {
				deliver(t, url, orderBody(o), nil)
			}
		})
	}
	for _, o := range queue {
		work <- o
	}
	close(work)
	wg.Wait()
}

// orderIDs makes n distinct order ids.
func orderIDs(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return ids
}

func orderBody(id string) string {
	return fmt.Sprintf(`{"event":"order.paid","order":{"id":%q,"email":"ana@example.com","total":10.50}}`, id)
}

// together sends n copies at the same moment.
func together(t *testing.T, n int, send func() (answer, error)) []answer {
	t.Helper()
	answers := make([]answer, n)
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = send()
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// stripeSignature is the header that Stripe would send at the given time.
func stripeSignature(secret, body string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
