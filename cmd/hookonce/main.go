// Command hookonce runs every role and every operator command.
package main

import (
	"os"

	"github.com/hookonce/hookonce/internal/app"
)

func main() {
	os.Exit(app.Main("hookonce", os.Args[1:], os.Stdout, os.Stderr))
}
