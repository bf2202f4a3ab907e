package server

import "testing"

// ForgetPull lets the next pull be tried although an earlier one failed, and
// forgets the outcome at the end of the test.
func ForgetPull(t *testing.T) {
	forget := func() {
		engine.Lock()
		defer engine.Unlock()
		engine.noPull = nil
	}
	forget()
	t.Cleanup(forget)
}

// HideLocal makes the machine look as if no server were installed.
func HideLocal(t *testing.T) {
	programExists = func(string) bool { return false }
	t.Cleanup(func() { programExists = isProgram })
}
