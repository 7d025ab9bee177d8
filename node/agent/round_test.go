package agent

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// On one processor, what waits for a file is served in the pauses of a round, not only after all of its work.
func TestRoundLetsOthersWork(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var read atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for one := make([]byte, 1); ; read.Add(1) {
			if _, err := r.Read(one); err != nil {
				return
			}
		}
	}()
	const containers = 40
	round, served := newRound(containers), 0
	for i := range containers {
		if _, err := w.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < stepWork; { // the work on a container
		}
		round.next()
		if int(read.Load()) == i+1 {
			served++
		}
	}
	if served < containers/2 {
		t.Errorf("after the work on %d of %d containers what had come meanwhile was served", served, containers)
	}
	w.Close()
	<-ended
}

// However many containers there are, a round pauses only so often.
func TestPausesOfRoundAreBounded(t *testing.T) {
	for containers, least := range map[int]int{0: 0, 100: 2, 10_000: 200} {
		if r := newRound(containers); r.least != least {
			t.Errorf("with %d containers a step is %d containers at least, want %d", containers, r.least, least)
		}
	}
}
