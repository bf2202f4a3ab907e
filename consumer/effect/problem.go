package effect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Problem is what is wrong with one setting of an effect, and the way out.
type Problem struct {
	// Setting is the setting's name within the effect, like "subject" or
	// "attachments[0].path".
	Setting string
	// Text says what is wrong and what to write. It never holds a secret.
	Text string
}

// Error is the setting and the text.
func (p *Problem) Error() string { return p.Setting + ": " + p.Text }

// Problems takes apart what Compile returns. An error that is no problem of a
// setting stands under the empty one.
func Problems(err error) []*Problem {
	if err == nil {
		return nil
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the joined ones only
		var all []*Problem
		for _, one := range several.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return []*Problem{{Text: err.Error()}}
}

// problems collects, so that all are told at once.
type problems []error

func (p *problems) bad(setting, format string, args ...any) {
	*p = append(*p, &Problem{Setting: setting, Text: fmt.Sprintf(format, args...)})
}

func (p problems) err() error { return errors.Join(p...) }

// maxFile bounds a template file, in bytes.
const maxFile = 1 << 20

// file reads a template file, whose name is relative to dir.
func (p *problems) file(setting, dir, name string) (string, bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = errors.New("not a regular file of at most 1MiB")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		p.bad(setting, "%s cannot be read (%v): name a template file, relative to the configuration file", name, err)
		return "", false
	}
	return string(text), true
}
