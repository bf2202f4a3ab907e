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
	if s.Encoding+s.Prefix+s.Signed+s.Timestamp+s.SecretEncoding != "" || s.Header != "" && !p.takesHeader(s.Scheme) {
		return nil, fmt.Errorf("%w: provider %s has a verification of its own; to replace it name a verify.scheme, such as %s",
			ErrConfig, p.Name, SchemeHMACSHA256)
	}
	return p.Verifier(s)
}

// takesHeader tells whether the header of a static secret is the user's to choose.
func (p Preset) takesHeader(scheme string) bool { return p.Name == "vtex" || scheme == "static" }

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
