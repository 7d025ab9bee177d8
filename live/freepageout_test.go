package live

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/live/api"
)

// A policy that counts on memory that leaves free of charge is for the simulator.
func TestFreePageOutIsRefused(t *testing.T) {
	p, err := policy.New("ecs", map[string]string{"ecs.memory": "paper"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Policy: p}); api.KindOf(err) != api.Invalid ||
		!strings.HasPrefix(err.Error(), `setting ecs.memory="paper": must be ideal or phase`) {
		t.Errorf("the error is %v", err)
	}
}
