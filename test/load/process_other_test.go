//go:build !unix

package load_test

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

// peakMemory is not known here.
func peakMemory() int { return 0 }
