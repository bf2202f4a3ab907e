// Package arch checks that the parts stay apart: its tests are the import rules
// and the habits of this repository, each with its reason.
package arch
