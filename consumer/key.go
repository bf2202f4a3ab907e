package consumer

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/hookonce/hookonce"
)

// DownstreamKey is what the target of an outside effect is told, so that it
// can take several tries for one: <source>/<key>/<group>/<step>, behind a
// forced run ";run<n>". With once_per its value stands in place of
// <source>/<key>. Over [hookonce.MaxMessageID] bytes it is a readable prefix,
// "~" and the SHA-256 of the whole in hexadecimal.
func DownstreamKey(subject, group, step string, run int) string {
	full := subject + "/" + group + "/" + step
	if run > 0 {
		full += ";run" + strconv.Itoa(run)
	}
	if len(full) <= hookonce.MaxMessageID {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	const tail = 1 + 2*sha256.Size
	return full[:hookonce.MaxMessageID-tail] + "~" + hex.EncodeToString(sum[:])
}
