package inbox

// Statement is one SQL statement with its arguments.
type Statement struct {
	Text string
	Args []any
}
