package fault

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"run", "kill", "logs", "status", "memory", "min_memory", "max_memory", "max_attempts", "ps"}
	for name, want := range map[string]string{
		"rnu": "run", "kil": "kill", "kkill": "kill", "kilo": "kill", "lgos": "logs", "stauts": "status", "memroy": "memory",
		"memorry": "memory", "mem": "memory", "minmemory": "min_memory", "max": "max_memory", "statsus": "status",
		"sp": "ps", "p": "", "x": "", "": "", "frobnicate": "", "gpu": "", "log": "logs",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := DidYouMean("kil", known) + DidYouMean("gpu", known); got != "; did you mean kill?" {
		t.Error(got)
	}
}
