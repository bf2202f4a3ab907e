// Package app puts the parts together: it reads the configuration, opens
// stores and connections, runs the roles that were asked for and stops them in
// order. All composition is here; the programs under cmd are one call each.
package app
