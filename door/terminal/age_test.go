package terminal

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	tests := map[time.Duration]string{
		-time.Second: "0s", 1234 * time.Millisecond: "1.2s", 59 * time.Second: "59s", 150 * time.Second: "2m30s",
		3 * time.Hour: "3h00m", 75 * time.Hour: "3d03h",
	}
	for d, want := range tests {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %s, want %s", d, got, want)
		}
	}
}
