package daemon

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
)

// Reread is a configuration that was read again while the daemon runs.
type Reread struct {
	File string // empty if there is none any more
	// Applied are the settings below with a changed value, and Waiting all others that differ from what the daemon
	// started with.
	Applied, Waiting []Change
	Level            slog.Level
	Keep             retention.Rule
	Quotas           *cluster.Quotas
	OutputLimit      resource.Amount
	Certificate      *tls.Certificate // with which the daemon listens on the network; nil if it does not
}

// Change is a setting whose value in force differs from that in the configuration. An empty value is the default.
type Change struct{ Setting, From, To string }

// reload reads the configuration again and applies what a running daemon can apply. If that is not possible, nothing
// changes.
func (d *Daemon) reload() {
	r, err := d.config.Reread()
	if err == nil {
		err = d.Driver.Retain(r.Keep)
	}
	if err == nil {
		err = d.Driver.SetQuotas(r.Quotas)
	}
	if err != nil {
		d.log.Error("the configuration was read again and not applied", "error", err)
		d.configured.Mistake = err.Error()
		d.tellConfigured()
		return
	}
	d.Agent.LimitOutput(r.OutputLimit)
	d.config.Level.Set(r.Level)
	if r.Certificate != nil && d.config.Listen != "" {
		d.server.Certify(r.Certificate)
		d.log.Info("the certificate was read again", "expires", r.Certificate.Leaf.NotAfter.Format(time.RFC3339))
	}
	d.configured = api.Configuration{File: r.File}
	d.log.Info("the configuration was read again", "file", r.File, "applied", len(r.Applied), "waiting", len(r.Waiting))
	for _, c := range r.Applied {
		d.log.Info("setting applied", "setting", c.Setting, "from", c.From, "to", c.To)
	}
	for _, c := range r.Waiting {
		d.log.Warn("setting waits for the next start of bellows", "setting", c.Setting, "from", c.From, "to", c.To)
		d.configured.Waiting = append(d.configured.Waiting, c.Setting)
	}
	d.tellConfigured()
}

// tellConfigured gives the API what it shows of the configuration.
func (d *Daemon) tellConfigured() {
	if d.server != nil {
		d.server.Configured(d.configured.Shown())
	}
}
