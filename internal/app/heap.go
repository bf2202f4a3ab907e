package app

import "os"

// heapFloor is never written to, so it takes address space and no memory.
var heapFloor []byte

// RaiseHeapFloor keeps the garbage collector from running dozens of times a
// second: it starts when the heap has doubled, and the heap of a receiver is a
// few MiB however much passes through. With 32 MiB that exist on paper it starts
// about 32 MiB later, and on larger heaps as ever. A GOGC of the environment
// leaves it as it is.
func RaiseHeapFloor() {
	if os.Getenv("GOGC") == "" && heapFloor == nil {
		heapFloor = make([]byte, 32<<20)
	}
}
