package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// jump is a difference of times from which on the clock has been set: a daemon needs some of it to start.
const jump = time.Minute

// served reports whether the daemon that answers is another user's.
func (f *Facts) served() bool { return f.Status != nil && f.Status.UID != uint32(f.UID) }

// orReport returns a remedy, or that of a user who may not carry it out.
func (f *Facts) orReport(remedy string) string {
	if f.served() && f.UID != 0 {
		return "report it to the administrator of this machine"
	}
	return remedy
}

const synchronize = "run `timedatectl set-ntp true`, or start another program that keeps the clock right"

func (f *Facts) clock() Finding {
	if ahead := f.Changed.Sub(f.Now); f.Newest != "" && ahead > jump {
		return warning(fmt.Sprintf("the clock was set back: the last change of %s is %v ahead of now",
			filepath.Join(f.State, f.Newest), ahead.Round(time.Second)), synchronize)
	}
	if f.Status != nil && !f.Began.IsZero() {
		if off := f.Began.Sub(f.Status.Since).Round(time.Second); off.Abs() > jump {
			return warning(fmt.Sprintf(
				"the clock was set by %v since the daemon started, and the daemon keeps to its old time", off),
				f.orReport(fmt.Sprintf("run `kill %d` and start the daemon again: its containers continue", f.Status.PID)))
		}
	}
	return f.Clock.judge()
}

// judge is the finding while the clock is right.
func (f *Clock) judge() Finding {
	switch {
	case f.ClockErr != nil:
		return fine("whether a program synchronizes the clock is unknown: %v", f.ClockErr)
	case !f.Synced:
		return warning("no program synchronizes the clock: if it is set later, the daemon keeps to the time of its "+
			"start, and its times are off", synchronize)
	}
	return fine("a program synchronizes the clock")
}

// renewal is how long before its end a certificate is usually renewed.
const renewal = 14 * 24 * time.Hour

func (f *Facts) certificate() Finding {
	const renew = "write a new certificate to the files of tls_cert and tls_key, and send the daemon a SIGHUP, " +
		"which reads them again"
	if f.Status == nil || f.Status.Listens == nil {
		return fine("no daemon here listens on the network")
	}
	at, ends := f.Status.Listens.Address, f.Status.Listens.Certificate
	date := ends.UTC().Format(time.DateOnly)
	switch left := ends.Sub(f.Now); {
	case left <= 0:
		return problem(fmt.Sprintf("the certificate of %s has expired on %s: no client on the network can connect", at,
			date), renew)
	case left < renewal:
		return warning(fmt.Sprintf("the certificate of %s expires on %s", at, date), renew)
	}
	return fine("the certificate of %s expires on %s", at, date)
}

func (f *Facts) socket() Finding {
	switch {
	case f.Status != nil:
		return fine("a daemon answers on %s", f.Socket)
	case f.SocketErr != nil:
		return problem(f.SocketErr.Error(), "choose another path with --socket, or run as the owner of that folder")
	case f.SocketLeft && api.KindOf(f.StatusErr) != api.Unavailable:
		return fine("a process listens on %s, of which the finding below says more", f.Socket)
	case f.SocketLeft:
		return fine("no daemon answers on %s, which `bellows up` replaces", f.Socket)
	}
	return fine("%s can be made", f.Socket)
}

// open says which other users can have jobs on the daemon; empty if none can. Group 0 is that of root, who can anyway.
func (f *Facts) open() string {
	const group, others = fs.FileMode(0o060), fs.FileMode(0o006)
	switch {
	case f.SocketMode&others == others:
		return "every user of this machine"
	case f.SocketMode&group == group && f.SocketGID != 0:
		return fmt.Sprintf("every member of group %s", groupName(f.SocketGID))
	case f.Status.Listens != nil:
		return "every user with a token"
	}
	return ""
}

// groupName returns the name of a group, or its number.
func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return g.Name
	}
	return number
}

func (f *Facts) quotas() Finding {
	if f.Status == nil {
		return fine("no daemon here has users")
	}
	open := f.open()
	switch {
	case open == "":
		return fine("the daemon serves one user, and root")
	case !f.Status.Quotas && f.Status.Version != f.Version:
		return fine("whether there are quotas is unknown: the daemon is of another version")
	case !f.Status.Quotas:
		return warning(fmt.Sprintf("there are no quotas, and %s can take the whole machine and fill its queue", open),
			"set user_quota in the configuration file, such as user_quota: {memory: 16GiB, waiting: 1000, submissions: "+
				"120}, and send the daemon a SIGHUP; `bellows quota` shows what is taken")
	}
	return fine("there are quotas; %s can have jobs", open)
}

func (f *Facts) daemon() Finding {
	s := f.Status
	switch {
	case s == nil:
		return f.noDaemon()
	case s.Trouble != "":
		return problem(fmt.Sprintf("process %d reports: %s", s.PID, s.Trouble),
			f.orReport(fmt.Sprintf("read %s, if the daemon was started with --detach, and `bellows status`",
				filepath.Join(s.State, "daemon.log"))))
	case s.Version != f.Version:
		return warning(fmt.Sprintf("process %d is version %s, and this program is version %s", s.PID, s.Version, f.Version),
			f.orReport(fmt.Sprintf("run `kill %d` and start the daemon again with this program: its containers continue",
				s.PID)))
	case leftover(s) > 0:
		return warning(fmt.Sprintf("%s of memory outlives the tasks that have used it, and is not granted again",
			resource.FormatMemory(leftover(s))),
			"remove files in memory, such as those in /dev/shm, and segments that programs shared, which `ipcs -m` lists")
	case s.Crowded != "":
		return warning(s.Crowded,
			f.orReport("end one of the daemons with `bellows down`, or start each with its part of the memory"))
	case f.served() && s.UID == 0:
		return fine("process %d of root serves this user: %s under %s, version %s", s.PID,
			terminal.Count(s.Running, "running task"), s.Policy, s.Version)
	case f.served():
		return fine("process %d of user %d serves this user: %s under %s, version %s", s.PID, s.UID,
			terminal.Count(s.Running, "running task"), s.Policy, s.Version)
	}
	return fine("process %d runs %s under %s, version %s", s.PID, terminal.Count(s.Running, "task"), s.Policy, s.Version)
}

// leftover is how much memory outlives the tasks of a daemon, bytes.
func leftover(s *api.Status) (sum resource.Amount) {
	for i := range s.Nodes {
		sum += resource.Amount(s.Nodes[i].LeftoverMemory)
	}
	return sum
}

// noDaemon is the finding if no daemon has answered.
func (f *Facts) noDaemon() Finding {
	kind := api.KindOf(f.StatusErr)
	switch {
	case f.Held:
		return problem(fmt.Sprintf("process %s uses %s, but does not answer on %s: %v", f.Holder, f.State, f.Socket,
			f.StatusErr), fmt.Sprintf(
			"name its socket with --socket, wait until it has started or ended, or run `kill %s`: its containers continue",
			f.Holder))
	case kind == api.Denied:
		return problem(f.StatusErr.Error(), "choose another path with --socket")
	case errors.Is(f.StatusErr, context.DeadlineExceeded):
		return problem(fmt.Sprintf("the process that listens on %s has not answered for %v", f.Socket, patience),
			"end it, and start `bellows up` again: containers continue")
	case kind == api.Unavailable:
		return fine("none runs; `bellows up --detach` starts one")
	}
	return problem(fmt.Sprintf("%s: %v", f.Socket, f.StatusErr),
		"choose another path with --socket, or end the process that listens there")
}
