package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
)

// parseID reads a stream id, <ms>-<seq>.
func parseID(s string) (hookonce.EntryID, error) {
	ms, seq, ok := strings.Cut(s, "-")
	hi, err1 := strconv.ParseUint(ms, 10, 64)
	lo, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return hookonce.EntryID{}, fmt.Errorf("%q is no stream id", s)
	}
	return hookonce.EntryID{Hi: hi, Lo: lo}, nil
}

func formatID(id hookonce.EntryID) string {
	return strconv.FormatUint(id.Hi, 10) + "-" + strconv.FormatUint(id.Lo, 10)
}
