package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce/internal/store/postgres"
)

func BenchmarkClaimOne(b *testing.B) {
	for name, keys := range map[string]int64{"new": 1 << 60, "duplicate": 100} {
		b.Run(name, func(b *testing.B) {
			s := open(b, postgres.StoreOptions{DSN: migrated(b), MaxEvents: 1 << 40, MaxBytes: 1 << 40})
			var n atomic.Int64
			b.SetParallelism(32)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c := claimOf(fmt.Sprint(n.Add(1) % keys))
					c.Event.Body = make([]byte, 1200)
					if _, err := s.ClaimOne(b.Context(), c); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
