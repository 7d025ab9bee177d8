package pufferfish

import (
	"math"
	"testing"
)

// TestSqueezeKeepsBytes: the bytes read from and written to swap equal the change of memory, within the limit and the
// speed of the device.
func TestSqueezeKeepsBytes(t *testing.T) {
	for _, cpu := range []float64{0, oneOfEight, 1} {
		before := 45e9
		for second, m := range squeeze(cpu) {
			if moved := m.in - m.out; math.Abs(m.resident-before-moved) > 2 {
				t.Fatalf("second %d: resident %.0f after %.0f, and %.0f came", second, m.resident, before, moved)
			}
			if m.in < 0 || m.out < 0 || m.in+m.out > 2e9+2 || m.resident > max(before, m.limit) {
				t.Fatalf("second %d: %+v", second, m)
			}
			if cpu == 0 && second >= squeezeSuspends && second < squeezeRestores && m.in+m.out > 0 {
				t.Fatalf("second %d: frozen, and swaps %+v", second, m)
			}
			before = m.resident
		}
		if before < 44e9 {
			t.Errorf("with %v of the CPU: %.0f bytes resident in the end", cpu, before)
		}
	}
}
