// Command consumer is the role consumer as a program of its own.
package main

import (
	"os"

	"github.com/hookonce/hookonce/internal/app"
)

func main() {
	os.Exit(app.Main("consumer", os.Args[1:], os.Stdout, os.Stderr))
}
