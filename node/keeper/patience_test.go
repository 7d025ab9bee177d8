package keeper

import (
	"context"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	var p patience
	start := time.Unix(1000, 0)
	if !p.may(start) || p.within(128<<20) != 1250*time.Millisecond {
		t.Fatal("it begins without experience")
	}
	p.took(start, time.Second, 128<<20, nil)
	if !p.may(start) {
		t.Fatal("fast enough, and left out")
	}
	p.took(start, 2*time.Second, 128<<20, context.DeadlineExceeded)
	if p.may(start.Add(9*time.Second)) || !p.may(start.Add(10*time.Second)) {
		t.Fatal("after one slow time it is to be left out for 10s")
	}
	for range 10 {
		p.took(start, 2*time.Second, 128<<20, nil)
	}
	if p.may(start.Add(9*time.Minute)) || !p.may(start.Add(10*time.Minute)) {
		t.Fatal("after many slow times it is to be left out for 10m")
	}
	p.took(start.Add(10*time.Minute), time.Second, 128<<20, nil)
	p.took(start.Add(10*time.Minute), 2*time.Second, 128<<20, nil)
	if !p.may(start.Add(10*time.Minute + 10*time.Second)) {
		t.Fatal("a fast time is forgotten")
	}
}
