package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/door/server"
	"github.com/bellows-rm/bellows/durable/statedir"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/watchdog"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/inherited"
)

const upLong = `Start the daemon that runs jobs on this machine, and print one line that says
what it manages. Run it as root, or as a user with a delegated cgroup v2 group.
Jobs outlive the daemon: the next "bellows up" with the same --state finds their
containers. "bellows down" ends the daemon for good.

Flags may be fields of a configuration file, which the daemon reads again on
SIGHUP: see "bellows config". The state directory is /var/lib/bellows for root,
else ~/.local/state/bellows. The daemon serves root and the user who starts it;
--socket-group, --socket-mode and --operators let in other users, and --listen
clients on the network. See docs/getting-started.md, docs/formats.md (settings),
docs/reference/log.md, docs/multi-user.md and docs/durability.md.`

const upExample = `  bellows up --memory 4GiB --cpus 2 --detach
  bellows up --network 1Gbit/s          (what tasks request of it is added up)
  bellows up --config bellows.yaml --memory 8GiB
  bellows up --policy fair --set fair.reservations=false
  bellows up --flex ejf+s --puff-ratio 0.2    (FLEX containers as in Pufferfish)
  bellows up --detach --socket-group users --operators adm    (for many users)
  bellows up --detach --listen 0.0.0.0:8443 --tls-cert /etc/bellows/cert.pem \
      --tls-key /etc/bellows/key.pem      (clients on the network, with tokens)
  systemd-run --user --scope -p Delegate=yes bellows up    (as an ordinary user)`

// upOptions are the settings of the daemon, and what else `bellows up` is given.
type upOptions struct {
	// The settings; see table.
	memory    resource.Amount
	cpus      resource.Amount
	disk      resource.Amount // 0 is unknown
	network   resource.Amount // 0 is unknown
	swapping  resource.Amount // bytes a day
	policy    string
	settings  map[string]string // of policies
	flex      flexOptions
	still     string
	reserves  string // auto or stated
	output    resource.Amount
	keep      retention.Rule
	users     quotaFlag // quotas of users, and of queues
	queues    quotaFlag
	verbose   bool
	format    string // of the log
	door      server.Door
	operators *api.Group
	listen    listening

	place  place.Place
	config string // path of the configuration file, if a flag names it
	detach bool
	accept bool   // a store that is damaged or behind
	log    string // path of the log; empty for standard error

	origins origins // configure sets them
}

// flexOptions are the settings of the memory manager.
type flexOptions struct {
	preset    string
	puffRatio float64 // 0 is the preset's
}

func (f *flexOptions) manager() (memory.Parameters, error) {
	return memory.PresetOf(f.preset, f.puffRatio)
}

// origins are where the settings come from.
type origins struct {
	file  string            // the configuration file that was read; empty if there is none
	rows  map[string]string // where the value of each row comes from: flag, or FILE:LINE; missing is the default
	again []string          // arguments that start the same daemon
}

// set says where the value of a row comes from.
func (o *origins) set(row, from string) { o.rows[row] = from }

// stated reports whether the value of a row is not the default.
func (o *origins) stated(row string) bool { return o.rows[row] != "" }

// of returns where the value of a row comes from.
func (o *origins) of(row string) string { return cmp.Or(o.rows[row], "default") }

// newUpOptions returns the defaults.
func newUpOptions() *upOptions {
	return &upOptions{policy: policy.Default, still: "lends", reserves: "auto",
		flex: flexOptions{preset: "default"}, format: logText,
		settings: map[string]string{},
		users:    quotaFlag{}, queues: quotaFlag{}, origins: origins{rows: map[string]string{}},
		output: agent.DefaultOutputLimit,
		keep:   retention.Rule{For: 30 * 24 * time.Hour, Jobs: 100_000, Output: 10 * resource.GiB, Events: resource.GiB}}
}

func upCommand() *cobra.Command {
	_, cmd := newUp()
	return cmd
}

func newUp() (*upOptions, *cobra.Command) {
	o := newUpOptions()
	cmd := &cobra.Command{
		Use:        "up",
		SuggestFor: []string{"start", "daemon", "serve"},
		Short:      "Start the daemon on this machine",
		Long:       upLong,
		Example:    upExample,
		Args:       cobra.NoArgs,
		RunE:       func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.flags(f)
	o.configFlag(f)
	o.place.Flags(cmd, true)
	f.BoolVarP(&o.detach, "detach", "d", false,
		"return once the daemon answers; it logs to daemon.log in the state directory")
	f.BoolVar(&o.accept, "accept-store", false,
		"continue with a store that is damaged, lost or older than it was; what it lacks is forgotten")
	f.StringVar(&o.log, "log", "", "log to a `file`") // used by --detach to start the daemon
	_ = f.MarkHidden("log")
	return o, cmd
}

// configFlag adds the flag that names the configuration file.
func (o *upOptions) configFlag(f *pflag.FlagSet) {
	f.StringVar(&o.config, "config", "", "configuration `file`, which flags take precedence over; default: "+
		place.UsualConfig+" if it exists, for root with the usual state directory, else none")
}

func (o *upOptions) run(cmd *cobra.Command) error {
	// Neither jobs nor a daemon that outlives its starter may inherit the open files of the starter.
	if err := inherited.CloseDescriptors(); err != nil {
		return err
	}
	if err := o.configure(cmd.Flags()); err != nil {
		return err
	}
	if os.Geteuid() != 0 && (o.door.Group != nil || o.door.Mode&0o066 != 0) {
		return command.Usagef("socket-mode, socket-group: only a daemon of root can serve other users")
	}
	c, err := o.daemon()
	if err != nil {
		return err
	}
	opened := sayWhatCloses(o.place.State, cmd.ErrOrStderr())
	defer opened()
	if o.detach {
		if err := o.leave(cmd.Context(), cmd.OutOrStdout()); err != nil {
			return err
		}
		o.warn(cmd.Context(), cmd.ErrOrStderr())
		return nil
	}
	to := cmd.ErrOrStderr()
	var log *daemonLog
	if o.log != "" {
		if log, err = openDaemonLog(o.log, daemonLogSize); err != nil {
			return err
		}
		to = log
	}
	c.Level = &slog.LevelVar{}
	c.Level.Set(o.level())
	c.Log = newLogger(to, o.format, c.Level)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	c.Hangups, c.Reread = hangups, o.rereads()
	// When the machine runs out of memory, the kernel must kill programs before the daemon and the supervisors, which
	// inherit this.
	var unprotected error
	if c.Agent.OOMScore, unprotected = inherited.Protect(); unprotected != nil {
		c.Log.Info("when memory runs out, the kernel may kill this daemon and its supervisors as soon as programs", "error",
			unprotected)
	}
	d, err := daemon.Open(c)
	opened()
	if err != nil {
		return err
	}
	if log != nil {
		log.becomeStderr() // the process that waits for the line reads nothing afterwards
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), o.line(d.Capacity())); err != nil {
		return errors.Join(fmt.Errorf("say what is managed: %w", err), d.Close())
	}
	if err := tellServiceManager("READY=1"); err != nil {
		c.Log.Warn("the service manager was not told that the daemon is ready", "error", err)
	}
	return d.Serve(cmd.Context())
}

// level returns the least level of messages in the log.
func (o *upOptions) level() slog.Level {
	if o.verbose {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// sayWhatCloses says, after a second, that the last daemon of a state directory is closing and is waited for. The
// caller calls opened once this daemon is open, or cannot be.
func sayWhatCloses(state string, to io.Writer) (opened func() bool) {
	return time.AfterFunc(time.Second, func() {
		if process, _, closes := store.LockHolder(state); closes {
			fmt.Fprintf(to, "bellows: the last daemon, process %s, is closing: this one waits for up to %v\n", process,
				store.ClosingWait)
		}
	}).Stop
}

// daemon returns the daemon that the settings describe, without its log. Settings that contradict each other or the
// machine are a mistake of the user.
func (o *upOptions) daemon() (daemon.Config, error) {
	p, err := o.newPolicy()
	if err != nil {
		return daemon.Config{}, command.Usage(err) // a mistake in a name or a setting
	}
	capacity, err := agent.Capacity(o.memory, o.cpus)
	if err != nil {
		return daemon.Config{}, command.Usage(err)
	}
	for what := range o.queues {
		if err := checkQueueQuota(what); err != nil {
			return daemon.Config{}, command.Usagef("queue_quota %s: %v", what, err)
		}
	}
	capacity[resource.Disk], capacity[resource.Network] = o.disk, o.network
	manager, err := o.flex.manager()
	if err != nil {
		return daemon.Config{}, command.Usage(err)
	}
	door := o.door
	if door.Group != nil {
		door.Mode = cmp.Or(door.Mode, 0o660)
	}
	certificate, err := o.listen.load()
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{State: o.place.State, Socket: o.place.Socket, Door: door, Operators: o.operators,
		Configuration: o.origins.file, MeasureDisk: !o.origins.stated("disk"), AcceptStore: o.accept,
		Version: command.VersionText(), Listen: o.listen.address, Certificate: certificate,
		Agent: agent.Config{Capacity: capacity, OutputLimit: o.output, SwapBudget: o.swapping, Memory: manager},
		Driver: live.Config{Policy: p, Settings: o.settings, Keeps: o.still == "keeps",
			ReservesStated: o.reserves == "stated",
			Keep:           &o.keep, Quotas: o.quotas(),
			Patience: Patience}}, nil
}

// line describes the managed resources.
func (o *upOptions) line(capacity resource.Vector) string {
	name, _ := os.Hostname()
	return fmt.Sprintf("bellows manages %s and %s of %s under %s; socket %s",
		resource.FormatMemory(capacity[resource.Memory]), resource.CPU.Format(capacity[resource.CPU]), name, o.policy,
		o.place.Socket)
}

func (o *upOptions) newPolicy() (policy.Policy, error) {
	p, err := NewPolicy(o.policy, o.settings)
	if err == nil {
		err = policy.CheckUsed(o.settings, o.policy)
	}
	if err == nil {
		err = live.CheckPolicy(p)
	}
	return p, err
}

// NewPolicy is policy.New; a test has one of its own.
var NewPolicy = policy.New

// Patience is how long the engine may take for one step; a test has less.
var Patience watchdog.Patience

// leave starts the same daemon in a session of its own, and returns once the daemon has printed its resources.
func (o *upOptions) leave(ctx context.Context, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := statedir.Make(o.place.State); err != nil {
		return err
	}
	log := filepath.Join(o.place.State, "daemon.log")
	child := exec.Command(self, append(o.origins.again, "--log", log)...)
	child.Dir = "/"
	var said bytes.Buffer
	child.Stderr = &said // until the daemon answers; then its standard error is the log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	// It may ignore interrupts, as this process does, but never SIGTERM.
	stop := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		_, err = io.WriteString(out, line)
		return err
	}
	return whyNot(child.Wait(), said.String(), log)
}

// warn prints the warnings in the log of a detached daemon to the user who starts it. Errors are ignored: the daemon
// runs.
func (o *upOptions) warn(ctx context.Context, to io.Writer) {
	client, err := o.place.Client()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if s, err := client.Status(ctx); err == nil && s.Crowded != "" {
		fmt.Fprintf(to, "bellows: %s\n", s.Crowded)
	}
}

// arguments returns the arguments of the daemon process: the given flags except for detach, and nothing of the
// configuration file. It runs in another folder, so that its paths are absolute.
func (o *upOptions) arguments(given *pflag.FlagSet) []string {
	args := []string{"up", "--state", o.place.State, "--socket", o.place.Socket}
	given.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "detach", "state", "socket":
			return
		}
		named := namedIn(f.Value)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			args = append(args, "--"+f.Name, name+"="+named[name])
		}
		if named == nil {
			args = append(args, "--"+f.Name+"="+cmp.Or(f.Value.String(), "0"))
		}
	})
	return args
}

// whyNot returns the last message of a daemon that did not start, with its exit code.
func whyNot(ended error, said, log string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	slices.Reverse(lines)
	why := ""
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "bellows: "); ok {
			why = text
			break
		}
	}
	if why == "" {
		return fmt.Errorf("start the daemon: %v; its log is %s; it said: %s", ended, log, said)
	}
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.ExitCode() == command.WrongUsage {
		return command.Usagef("%s", why)
	}
	return errors.New(why)
}
