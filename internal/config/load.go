package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// DefaultFile is read when no file is named and it exists.
const DefaultFile = "./hookonce.yaml"

// setFile stands in a problem's File for an override.
const setFile = "--set"

// maxFile bounds a configuration file and a ${file:…}, in bytes.
const maxFile = 1 << 20

// Role says which process the configuration is for.
type Role int

// The roles. An operator command opens no listener and receives nothing; a
// trial looks at the effects of one event and needs no server.
const (
	Serve Role = iota
	ReceiverRole
	ConsumerRole
	Operator
	Trial
)

// String is the role as the command line names it.
func (r Role) String() string {
	switch r {
	case ReceiverRole:
		return "receiver"
	case ConsumerRole:
		return "consumer"
	case Operator:
		return "operator"
	case Trial:
		return "trial"
	default:
		return "serve"
	}
}

func (r Role) receives() bool { return r == Serve || r == ReceiverRole }
func (r Role) consumes() bool { return r == Serve || r == ConsumerRole }

// doesEffects tells whether the role needs the effects' templates and settings.
func (r Role) doesEffects() bool { return r.consumes() || r == Trial }

// Options say what to load.
type Options struct {
	// File is the configuration file. Empty means [DefaultFile] if that exists,
	// else the built-in defaults; a file that is named must exist.
	File string
	// Set are overrides "path.to=value", applied in order after the file. The
	// value is YAML; entries of a mapping are named (sources.stripe.path=/x),
	// lists are replaced whole.
	Set []string
	// Getenv looks a variable up; nil means os.LookupEnv.
	Getenv func(string) (string, bool)
	// Role decides which listeners, combinations and secrets are checked.
	Role Role
}

// Load reads, completes and checks a configuration. Its error is always
// [Problems] and then there is no configuration.
func Load(opts Options) (*Config, error) {
	l := newLoader(opts)
	cfg := &Config{Dir: "."}
	text, ok := l.readFile(opts.File)
	if !ok {
		return nil, l.problems
	}
	cfg.Dir = l.dir
	root := l.parse(text)
	if len(l.problems) > 0 {
		return nil, l.problems // nothing was read: checks would only mislead
	}
	l.value(root, reflect.ValueOf(cfg).Elem(), place{})
	file := l.file
	for _, arg := range opts.Set {
		l.override(arg, reflect.ValueOf(cfg).Elem())
	}
	l.file = file
	l.fillDefaults(cfg)
	l.check(cfg, opts.Role)
	if len(l.problems) > 0 {
		l.problems.sort()
		return nil, l.problems
	}
	cfg.Warnings = l.warnings
	return cfg, nil
}

// loader is the state of one Load.
type loader struct {
	file   string // File of problems found now; setFile while an override is read
	dir    string // ${file:…} is relative to it
	isFile bool   // whether file has lines
	getenv func(string) (string, bool)
	role   Role

	at       map[string]Problem // path -> where its value stands (File and Line)
	set      map[string]bool    // paths that were given a value
	problems Problems
	warnings []string
}

func newLoader(opts Options) *loader {
	l := &loader{
		dir: ".", getenv: opts.Getenv, role: opts.Role,
		at: map[string]Problem{}, set: map[string]bool{},
	}
	if l.getenv == nil {
		l.getenv = os.LookupEnv
	}
	return l
}

// readFile reads the file to use; ok is false when it cannot be read.
func (l *loader) readFile(name string) (text []byte, ok bool) {
	named := name != ""
	if !named {
		name = DefaultFile
	}
	text, err := readBounded(name)
	switch {
	case err == nil:
		l.file, l.dir, l.isFile = filepath.Clean(name), filepath.Dir(name), true
		return text, true
	case !named && errors.Is(err, fs.ErrNotExist):
		l.file = "built-in defaults"
		return nil, true
	case errors.Is(err, fs.ErrNotExist):
		l.problems = Problems{{File: name, Text: "there is no such file: name one that exists, or leave --config out to use " +
			DefaultFile + " or the built-in defaults"}}
	default:
		l.problems = Problems{{File: name, Text: "cannot be read (" + reason(err) + "): make it a readable file of at most 1MiB"}}
	}
	return nil, false
}

// readBounded reads a regular file of at most [maxFile] bytes: a device or a
// pipe could keep the start waiting for ever.
func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, errors.New("more than 1MiB")
	}
	return text, nil
}

// reason is an error of the file system without the name, which the line has already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// bad notes a problem of the value being read, at a line of the current file.
func (l *loader) bad(line int, p place, format string, args ...any) {
	where := l.here(line)
	where.Path, where.Text = p.text, fmt.Sprintf(format, args...)
	l.problems = append(l.problems, where)
}

// here is a line of the current file; an override has no lines.
func (l *loader) here(line int) Problem {
	if l.file == setFile {
		line = 0
	}
	return Problem{File: l.file, Line: line}
}
