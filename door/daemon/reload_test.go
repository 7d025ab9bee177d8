package daemon_test

import (
	"errors"
	"log/slog"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
)

// A daemon applies what it can of a configuration that was read again, and its status names the rest. A mistake
// changes nothing.
func TestReload(t *testing.T) {
	c := config(t, t.TempDir())
	c.Configuration = "/etc/first.yaml"
	type answer struct {
		r   daemon.Reread
		err error
	}
	hangups, answers := make(chan os.Signal), make(chan answer)
	c.Hangups, c.Level, c.Reread = hangups, &slog.LevelVar{}, func() (daemon.Reread, error) {
		a := <-answers
		return a.r, a.err
	}
	d := open(t, c)
	served := make(chan error, 1)
	go func() { served <- d.Serve(t.Context()) }()
	client := client.New(c.Socket)
	check := func(want *api.Configuration) {
		t.Helper()
		s, err := client.Status(t.Context())
		if err != nil || !reflect.DeepEqual(s.Configuration, want) {
			t.Errorf("the configuration is %+v, want %+v: %v", s.Configuration, want, err)
		}
	}
	reload := func(r daemon.Reread, err error) {
		for range 2 { // The second is taken after the first was handled, and changes nothing.
			hangups <- syscall.SIGHUP
			answers <- answer{r, err}
		}
	}
	check(&api.Configuration{File: "/etc/first.yaml"})
	reload(daemon.Reread{File: "/etc/second.yaml",
		Waiting: []daemon.Change{{Setting: "memory", From: "1GiB", To: "2GiB"}}, Level: slog.LevelDebug,
		Keep: retention.Rule{For: time.Hour}, OutputLimit: resource.MiB}, nil)
	check(&api.Configuration{File: "/etc/second.yaml", Waiting: []string{"memory"}})
	if c.Level.Level() != slog.LevelDebug {
		t.Errorf("level %v", c.Level)
	}
	reload(daemon.Reread{}, errors.New("second.yaml:3: wrong"))
	check(&api.Configuration{File: "/etc/second.yaml", Waiting: []string{"memory"}, Mistake: "second.yaml:3: wrong"})
	if c.Level.Level() != slog.LevelDebug {
		t.Errorf("a configuration with a mistake changed the level to %v", c.Level)
	}
	reload(daemon.Reread{Keep: retention.Rule{For: time.Hour}, OutputLimit: resource.MiB}, nil)
	check(nil)
	if err := client.Shutdown(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
