// Package place finds the state directory and the socket of a daemon, or its address on the network, from flags, the
// environment and the system's defaults.
package place

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/durable"
)

// Place is the state directory of a daemon and the socket on which it listens, or its address on the network.
type Place struct {
	State, Socket string
	// Remote is for commands that only ask the daemon; its URL is empty if they ask it on the socket.
	Remote client.Remote
	asks   bool // the daemon may be on the network
	// flags are those of the command for State and Socket: an error names no other ones.
	flags []string
}

// Flags adds the flags that say where the daemon is. withState is for commands that open its state directory: their
// daemon is not on the network.
func (p *Place) Flags(cmd *cobra.Command, withState bool) {
	if withState {
		p.StateFlag(cmd)
	}
	p.SocketFlag(cmd)
	if !withState {
		p.asks = true
		cmd.Flags().StringVar(&p.Remote.URL, "server", "",
			"`address` of a daemon on the network, https://HOST:PORT (or $BELLOWS_SERVER)")
		cmd.Flags().StringVar(&p.Remote.TokenFile, "token-file", "",
			"`file` with the token for --server (or $BELLOWS_TOKEN_FILE)")
		cmd.Flags().StringVar(&p.Remote.AuthorityFile, "ca-file", "",
			"`file` with the authorities of --server (or $BELLOWS_CA_FILE); default: the system's")
	}
}

// SocketFlag adds only the flag for the socket.
func (p *Place) SocketFlag(cmd *cobra.Command) {
	p.flags = append(p.flags, "socket")
	cmd.Flags().StringVar(&p.Socket, "socket", "", "`file` where the daemon listens (or $BELLOWS_SOCKET)")
}

// StateFlag adds only the flag for the state directory.
func (p *Place) StateFlag(cmd *cobra.Command) {
	p.flags = append(p.flags, "state")
	cmd.Flags().StringVar(&p.State, "state", "", "state `directory` (or $BELLOWS_STATE)")
}

// Run returns the function of a command that asks the daemon.
func (p *Place) Run(do func(cmd *cobra.Command, client *client.Client, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := p.Client()
		if err != nil {
			return err
		}
		return do(cmd, client, args)
	}
}

// Fill sets the values that no flag has set: from the environment, otherwise to the system's usual places. If only the
// state directory was given, the socket is in it. Fill is for commands that open the state directory.
func (p *Place) Fill() error {
	err := p.fill()
	if err == nil && p.State == "" {
		err = p.homeless("state")
	}
	return err
}

// fill is Fill, but leaves the state directory empty where this user has none: who only asks the daemon needs the
// socket.
func (p *Place) fill() error {
	p.State = cmp.Or(p.State, os.Getenv("BELLOWS_STATE"))
	p.Socket = cmp.Or(p.Socket, os.Getenv("BELLOWS_SOCKET"))
	if p.State != "" && p.Socket == "" {
		p.Socket = filepath.Join(p.State, "bellows.sock")
	}
	state, socket := usualPlace()
	p.State, p.Socket = cmp.Or(p.State, state), cmp.Or(p.Socket, socket)
	if p.Socket == "" {
		if slices.Contains(p.flags, "state") {
			return p.homeless("state")
		}
		return p.homeless("socket")
	}
	for _, path := range []*string{&p.State, &p.Socket} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
	}
	// The kernel limits the length of a socket's name. Some bytes are left for the socket's temporary name.
	const longest = 100
	if len(p.Socket) > longest {
		return command.Usagef("socket %q: must be at most %d characters long, not %d", p.Socket, longest, len(p.Socket))
	}
	return nil
}

// homeless returns the error for a user without a home directory who named no place: field is state or socket.
func (p *Place) homeless(field string) error {
	by := "$BELLOWS_" + strings.ToUpper(field)
	if slices.Contains(p.flags, field) {
		by = "--" + field + " or " + by
	}
	return command.Usagef("%s: must be named by %s, because this user has no home directory", field, by)
}

// The state directory of root's daemon, its configuration file, and its socket, on which it can serve all users of
// the machine.
const (
	usualState    = "/var/lib/bellows"
	UsualConfig   = "/etc/bellows/bellows.yaml"
	machineSocket = "/run/bellows/bellows.sock"
)

// Config returns the path of the configuration file that the daemon reads unless a flag names another file; empty if it
// reads none. Other daemons of root than the usual one have other shares of the machine, and so other settings.
func (p *Place) Config() string {
	if os.Geteuid() == 0 && p.State == usualState {
		return UsualConfig
	}
	return ""
}

// usualPlace returns the default state directory and socket of this user. Each is empty if it would be in the home
// directory and the user has none.
func usualPlace() (state, socket string) {
	if os.Geteuid() == 0 {
		return usualState, machineSocket
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = filepath.Join(dir, "bellows")
	} else if home, err := os.UserHomeDir(); err == nil {
		state = filepath.Join(home, ".local", "state", "bellows")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		socket = filepath.Join(dir, "bellows", "bellows.sock")
	} else if state != "" {
		socket = filepath.Join(state, "bellows.sock")
	}
	return state, socket
}

// FirstTime reports whether the user has still to read something, which what names: not if a file in the state
// directory says that it was printed. Where that cannot be noted, it is printed again.
func (p *Place) FirstTime(what string) bool {
	dir := p.State
	if dir == "" { // the daemon is on the network
		dir, _ = usualPlace()
	}
	note := filepath.Join(dir, "told-"+what)
	if dir == "" || exists(note) {
		return dir == ""
	}
	if durable.MakeDir(dir) == nil {
		if f, err := durable.Open(note); err == nil {
			_ = f.Close()
		}
	}
	return true
}

// Usual reports whether other programs of this user find the socket by themselves: by $BELLOWS_SOCKET or in a usual
// place. Client or Fill must have filled it in.
func (p *Place) Usual() bool {
	named := os.Getenv("BELLOWS_SOCKET")
	_, usual := usualPlace()
	return p.Socket == named || named == "" && (p.Socket == usual || p.Socket == machineSocket && !exists(usual))
}

// Client returns a client for the daemon at that place. It leaves State empty for a user without a home directory. A
// user who names no place, and has no daemon at the usual place, gets the daemon of root if there is one.
func (p *Place) Client() (*client.Client, error) {
	if p.asks {
		switch remote := p.remote(); {
		case remote.URL != "" && p.Socket != "":
			return nil, command.Usagef("socket, server: only one of them can be given")
		case remote.URL != "":
			return client.NewRemote(remote)
		case p.Remote.TokenFile != "" || p.Remote.AuthorityFile != "":
			return nil, command.Usagef("token-file, ca-file: need --server or $BELLOWS_SERVER")
		}
	}
	named := cmp.Or(p.State, p.Socket, os.Getenv("BELLOWS_STATE"), os.Getenv("BELLOWS_SOCKET")) != ""
	err := p.fill()
	if !named && (err != nil || !exists(p.Socket)) && exists(machineSocket) {
		p.Socket, err = machineSocket, nil
	}
	if err != nil {
		return nil, err
	}
	return client.New(p.Socket), nil
}

// remote returns Remote with the values that no flag has set from the environment. A flag for the socket takes
// precedence over the environment.
func (p *Place) remote() client.Remote {
	r := p.Remote
	if r.URL == "" && p.Socket == "" {
		r.URL = os.Getenv("BELLOWS_SERVER")
	}
	r.TokenFile = cmp.Or(r.TokenFile, os.Getenv("BELLOWS_TOKEN_FILE"))
	r.AuthorityFile = cmp.Or(r.AuthorityFile, os.Getenv("BELLOWS_CA_FILE"))
	return r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
