// Package config reads and checks the configuration file.
//
// [Load] reads the file strictly, fills in environment variables and defaults,
// applies --set overrides and checks the whole. It gathers every problem it
// can find, each with its line and the way out, and returns them together as
// [Problems]. A configuration that Load returns is complete: no reader of it
// needs to know a default.
//
// # Variables
//
// Every scalar value may hold ${NAME}, ${NAME:-default} and ${file:/path}. The
// default counts when the variable is missing or empty. A file's path is
// relative to the configuration file, and one line break at its end is left
// out. "$${" writes the two characters "${"; every other dollar sign stands
// for itself, so that SQL's $$ and $tag$ need no care. Variables are put in
// after the YAML has been read: a value can never become structure, and
// nothing in it needs quoting or escaping. A value that is wholly a variable
// may fill a number, switch, size or duration; when it comes out empty there,
// or is left empty in the file, the default holds.
//
// Inside [ ] and { } YAML itself wants quotes around "${NAME}".
//
// A missing variable is a problem where the role uses the value. The consumer
// does not need the senders' secrets, nor the receiver the inbox's password.
//
// # What YAML offers and this file does not
//
// Anchors, aliases, merge keys, tags, several documents and mappings under
// keys that are not plain words are refused by name.
package config
