package provider

import (
	"fmt"
	"slices"
)

// NewVerifier makes the verifier of a source: the preset's own, or the one that
// Settings.Scheme names in its place. A zero tolerance is the preset's.
func (p Preset) NewVerifier(s Settings) (Verifier, error) {
	if s.Tolerance == 0 {
		s.Tolerance = p.Tolerance
	}
	if s.Tolerance == 0 {
		s.Tolerance = DefaultTolerance
	}
	switch s.Over {
	case "", "decoded":
	case "wire":
		s.Over = ""
		v, err := p.NewVerifier(s)
		return overWire{v}, err
	default:
		return nil, fmt.Errorf("%w: over %q is not known; write decoded or wire", ErrConfig, s.Over)
	}
	if p.Name == "generic" || s.Scheme != "" && !slices.Contains(p.Schemes, s.Scheme) {
		return Generic(s)
	}
	if s.Encoding+s.Prefix+s.Signed+s.Timestamp+s.SecretEncoding != "" || s.Header != "" && !p.takes("header") && s.Scheme != "static" {
		return nil, fmt.Errorf("%w: provider %s has a verification of its own; to replace it name a verify.scheme, such as %s",
			ErrConfig, p.Name, SchemeHMACSHA256)
	}
	for _, part := range []struct {
		name string
		set  bool
	}{{"keys", len(s.Keys) > 0}, {"keys_url", s.KeysURL != ""}, {"id", s.ID != ""}, {"token", s.Token != ""}} {
		if part.set && !p.takes(part.name) {
			return nil, fmt.Errorf("%w: provider %s does not use verify.%s; remove it", ErrConfig, p.Name, part.name)
		}
	}
	if p.takes("keys") && p.Name != "stone-openbank" { // which has a secret of the user's as well
		s.Secrets = slices.Concat(s.Secrets, s.Keys)
	}
	return p.Verifier(s)
}

func (p Preset) takes(name string) bool { return slices.Contains(p.Takes, name) }

// overWire verifies what came over the wire.
type overWire struct{ Verifier }

func (v overWire) Verify(r *Request) error {
	if r.Wire == nil {
		return v.Verifier.Verify(r)
	}
	wire := *r
	wire.Body = r.Wire
	err := v.Verifier.Verify(&wire)
	r.Old = wire.Old
	return err
}
