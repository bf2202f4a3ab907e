package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// newSchema compiles a JSON Schema. It may refer to itself only: a schema that
// is fetched at start would make the start depend on somebody else's server.
func newSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema: not a JSON document: %w", err)
	}
	const here = "hookonce:schema"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(here, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	schema, err := c.Compile(here)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to another document; put it into this one")
}

// checkSchema compares the event with the source's schema.
func (d *delivery) checkSchema() *rejection {
	if d.source.schema == nil {
		return nil
	}
	why := ""
	if d.input.JSON == nil {
		why = "no JSON"
	} else if doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(d.input.JSON, []byte("\xef\xbb\xbf")))); err != nil {
		why = "no JSON"
	} else if err := d.source.schema.Validate(doc); err != nil {
		why = schemaPlace(err)
	}
	switch {
	case why == "":
		return nil
	case d.source.parkInvalid || d.item:
		// Under its own key: when a person lets it go on, the sender's repeat of it
		// is a duplicate.
		d.claim.Event.Parked = "schema: " + why
		return nil
	default:
		return invalid.because(why, nil)
	}
}

// schemaPlace says where an event does not match, not what stands there.
func schemaPlace(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return "does not match"
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	place := strings.Join(v.InstanceLocation, ".")
	if place == "" {
		place = "the document"
	}
	rule := strings.Join(v.ErrorKind.KeywordPath(), "/")
	return fmt.Sprintf("%s: %s", place, rule)
}
