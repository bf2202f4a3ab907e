// Command receiver is the role receiver as a program of its own.
package main

import (
	"os"

	"github.com/hookonce/hookonce/internal/app"
)

func main() {
	os.Exit(app.Main("receiver", os.Args[1:], os.Stdout, os.Stderr))
}
