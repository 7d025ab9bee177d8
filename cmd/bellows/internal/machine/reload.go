package machine

import (
	"maps"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/door/daemon"
)

// rereads returns the function with which the daemon reads its configuration again: with the same flags, and with the
// file as it is then. It keeps the values in force.
func (o *upOptions) rereads() func() (daemon.Reread, error) {
	inForce := map[string]string{}
	for _, r := range o.rows() {
		inForce[r.Setting] = r.Value
	}
	return func() (daemon.Reread, error) {
		now, cmd := newUp()
		if err := cmd.ParseFlags(o.origins.again[1:]); err != nil {
			return daemon.Reread{}, err
		}
		if err := now.configure(cmd.Flags()); err != nil {
			return daemon.Reread{}, err
		}
		c, err := now.daemon()
		if err != nil {
			return daemon.Reread{}, err
		}
		applied, waiting := changes(inForce, now.rows())
		for _, c := range applied {
			if inForce[c.Setting] = c.To; c.To == "" {
				delete(inForce, c.Setting)
			}
		}
		return daemon.Reread{File: now.origins.file, Applied: applied, Waiting: waiting, Level: now.level(), Keep: now.keep,
			Quotas: now.quotas(), OutputLimit: now.output, Certificate: c.Certificate}, nil
	}
}

// changes returns the settings whose values differ from those in force: those that a running daemon applies, and
// others.
func changes(inForce map[string]string, read []row) (applied, waiting []daemon.Change) {
	gone := maps.Clone(inForce)
	for _, r := range read {
		delete(gone, r.Setting)
		c := daemon.Change{Setting: r.Setting, From: inForce[r.Setting], To: r.Value}
		switch {
		case c.From == c.To:
		case r.Reloads:
			applied = append(applied, c)
		default:
			waiting = append(waiting, c)
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(gone)) { // a setting of a policy, or a quota
		c := daemon.Change{Setting: setting, From: gone[setting]}
		if reloads(setting) {
			applied = append(applied, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	return applied, waiting
}

// reloads reports whether a running daemon applies a changed value of the setting that a row is about.
func reloads(row string) bool {
	field, _, _ := strings.Cut(row, " ")
	return slices.ContainsFunc(newUpOptions().table(), func(s setting) bool { return s.field() == field && s.reloads })
}
