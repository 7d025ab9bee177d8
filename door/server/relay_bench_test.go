package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// What a message of an executor costs in the pool alone, and over the API: access, deadlines, metrics and passing on.
// Both without a socket.
func BenchmarkMessage(b *testing.B) {
	p := startPool(b, pool.Config{Grace: time.Millisecond})
	lease, err := p.Register(b.Context(), executor.Registration{Executor: 1, Secret: "secret"})
	if err != nil {
		b.Fatal(err)
	}
	text, err := executor.Encode(executor.Beat{Lease: lease.Lease})
	if err != nil {
		b.Fatal(err)
	}
	own := ownPool(b, p.Handler())
	s := New(newFake(), own, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler))
	for _, way := range []struct {
		name, path string
		h          http.Handler
	}{{"pool", "/executors/1/beat", p.Handler()}, {"api", "/v1/pools/p/executors/1/beat", s.http.Handler}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", way.path, bytes.NewReader(text))
				for of := range own.all {
					r = r.WithContext(asUser(r.Context(), of.UID, of.User))
				}
				answer := httptest.NewRecorder()
				if way.h.ServeHTTP(answer, r); answer.Code != 200 {
					b.Fatalf("%d %s", answer.Code, answer.Body)
				}
			}
		})
	}
}
