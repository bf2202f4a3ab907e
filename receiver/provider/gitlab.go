package provider

import (
	"errors"
	"strings"
)

func gitlab() Preset {
	sample := standardSample("Webhook")
	sample.Body = `{"object_kind":"push","event_name":"push","checkout_sha":"{id}","project_id":1}`
	sample.Header["Idempotency-Key"] = "msg_{id}"
	sample.Header["X-Gitlab-Event"] = "Push Hook"
	return Preset{
		Name: "gitlab", Title: "GitLab", Confidence: "medium",
		Docs: "https://docs.gitlab.com/user/project/integrations/webhooks/",
		Verifies: "webhook-signature: v1,… (HMAC-SHA256 of id.timestamp.body) with a signing token as secret (whsec_…); X-Gitlab-Token, which " +
			"is static, with any other secret",
		Secrets: "the signing token whsec_…, or the secret token",
		Trap: "X-Gitlab-Event-UUID is shared by the hooks of one event, X-Gitlab-Webhook-UUID names the webhook: neither is a delivery. With the " +
			"secret token the body is not signed. checkout_sha is null when a branch is deleted.",
		Verifier: newGitlab,
		Volatile: map[string]string{"header:X-Gitlab-Webhook-Uuid": "names the webhook, not the event", "header:X-Gitlab-Event-Uuid": "is shared by the hooks of one event"},
		Keys:     []string{"header:Webhook-Id", "header:Idempotency-Key"},
		Types:    []string{"json:object_kind", "header:X-Gitlab-Event"},
		Created:  "json:object_attributes.updated_at", Entity: "json:object_attributes.id", Version: "json:object_attributes.updated_at",
		Sample: sample,
	}
}

// newGitlab takes each secret for its own scheme. A request with a signature is
// judged by that alone.
func newGitlab(s Settings) (Verifier, error) {
	signing, token := s, s
	signing.Secrets, signing.Expiring, token.Secrets, token.Expiring = nil, nil, nil, nil
	for _, secret := range s.all() {
		into := &token
		if strings.HasPrefix(secret.Value, "whsec_") {
			into = &signing
		}
		into.Expiring = append(into.Expiring, secret)
	}
	v := &gitlabVerifier{}
	var err error
	if len(signing.Expiring) > 0 {
		if v.signing, err = newStandard("Webhook")(signing); err != nil {
			return nil, err
		}
	}
	if len(token.Expiring) > 0 || v.signing == nil {
		if v.token, err = headerSecret("X-Gitlab-Token")(token); err != nil {
			return nil, err
		}
	}
	return v, nil
}

type gitlabVerifier struct{ signing, token Verifier }

func (v *gitlabVerifier) Credentials() []string {
	return []string{"Webhook-Signature", "X-Gitlab-Token"}
}

func (v *gitlabVerifier) Verify(r *Request) error {
	switch {
	case v.token == nil:
		return v.signing.Verify(r)
	case v.signing == nil:
		return v.token.Verify(r)
	}
	if err := v.signing.Verify(r); !errors.Is(err, ErrMissing) {
		return err
	}
	return v.token.Verify(r)
}
