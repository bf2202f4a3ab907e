// Package e2e tests the programs as a newcomer and an operator meet them:
// first run, bad configuration, surroundings that do not work, containers.
package e2e
