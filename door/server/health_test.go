package server

import (
	"testing"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

func (f *fake) Ready() error { return f.err }

// A daemon that does not serve is alive, and says why it is not ready.
func TestHealth(t *testing.T) {
	f := newFake()
	c, _ := start(t, f, fakeProfiles{})
	alive, err := client.Call[Health](t.Context(), c, "GET", "/v1/health", nil, nil)
	if err != nil || alive.Version != "test" || alive.PID == 0 {
		t.Errorf("health is %+v (%v)", alive, err)
	}
	if ready, err := client.Call[Readiness](t.Context(), c, "GET", "/v1/ready", nil, nil); err != nil || !ready.Ready {
		t.Errorf("it is not ready: %+v (%v)", ready, err)
	}
	f.err = api.Errorf(api.Unavailable, "the engine has not answered for 7s")
	if _, err := client.Call[Health](t.Context(), c, "GET", "/v1/health", nil, nil); err != nil {
		t.Errorf("a daemon that does not serve is not alive: %v", err)
	}
	if _, err := client.Call[Readiness](t.Context(), c, "GET", "/v1/ready", nil,
		nil); api.KindOf(err) != api.Unavailable ||
		err.Error() != "the engine has not answered for 7s" {
		t.Errorf("it is ready, or does not say why not: %v", err)
	}
}
