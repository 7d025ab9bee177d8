package place

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// A daemon on the network is named by flags or the environment. Flags take precedence, and commands that open a state
// directory ask a daemon of this machine.
func TestDaemonOnTheNetwork(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("bellows_1_"+strings.Repeat("a", 52)), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	for _, tt := range []struct {
		name      string
		env       map[string]string
		args      []string
		withState bool
		remote    bool
		mistake   string
	}{
		{name: "nothing"},
		{name: "flags", args: []string{"--server", "https://h:1", "--token-file", token}, remote: true},
		{name: "environment", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_TOKEN_FILE": token},
			remote: true},
		{name: "both", env: map[string]string{"BELLOWS_SERVER": "http://h", "BELLOWS_TOKEN_FILE": token},
			args: []string{"--server", "https://h:1"}, remote: true},
		{name: "environment and a socket", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_SOCKET": socket,
			"BELLOWS_TOKEN_FILE": token}, remote: true},
		{name: "environment and the flag of a socket", env: map[string]string{"BELLOWS_SERVER": "https://h:1",
			"BELLOWS_TOKEN_FILE": token}, args: []string{"--socket", socket}},
		{name: "a state directory", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_TOKEN_FILE": token},
			withState: true},
		{name: "both flags", args: []string{"--server", "https://h:1", "--token-file", token, "--socket", socket},
			mistake: "socket, server: only one of them can be given"},
		{name: "no token", args: []string{"--server", "https://h:1"}, mistake: "needs a token"},
		{name: "a token without a server", args: []string{"--token-file", token},
			mistake: "token-file, ca-file: need --server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"BELLOWS_SERVER", "BELLOWS_TOKEN_FILE", "BELLOWS_CA_FILE", "BELLOWS_SOCKET"} {
				t.Setenv(name, tt.env[name])
			}
			t.Setenv("BELLOWS_STATE", filepath.Dir(socket))
			var p Place
			cmd := &cobra.Command{Use: "c"}
			p.Flags(cmd, tt.withState)
			if err := cmd.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			client, err := p.Client()
			switch {
			case tt.mistake != "":
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("%v, want %s", err, tt.mistake)
				}
			case err != nil:
				t.Error(err)
			case client.Remote() != tt.remote:
				t.Errorf("asks over the network: %v", client.Remote())
			}
		})
	}
}

// A user without a home directory reaches a daemon that is named. Where the home directory is missed, the error names
// what the command has.
func TestWithoutHome(t *testing.T) {
	if os.Geteuid() == 0 { // whose places are not in a home directory
		if err := syscall.Seteuid(54321); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Seteuid(0) }()
	}
	socket := []string{"--socket", "/run/x/s"}
	for _, tt := range []struct {
		name    string
		env     map[string]string
		args    []string
		flags   func(*Place, *cobra.Command)
		fill    bool // the command opens the state directory
		mistake string
	}{
		{name: "asks at a socket", args: socket, flags: asking},
		{name: "asks at the socket of the environment", env: map[string]string{"BELLOWS_SOCKET": "/run/x/s"}, flags: asking},
		{name: "asks at the usual socket", env: map[string]string{"XDG_RUNTIME_DIR": "/run/x"}, flags: asking},
		{name: "may open the state directory", args: socket, flags: opening},
		{name: "opens it", args: socket, flags: opening, fill: true,
			mistake: "state: must be named by --state or $BELLOWS_STATE, because this user has no home directory"},
		{name: "opens that of the environment", env: map[string]string{"BELLOWS_STATE": "/tmp/x"}, flags: opening,
			fill: true},
		{name: "opens the usual one", env: map[string]string{"XDG_STATE_HOME": "/tmp/x"}, flags: opening, fill: true},
		{name: "knows no place", env: map[string]string{"BELLOWS_STATE": ""}, flags: opening, fill: true,
			mistake: "state: must be named by --state"},
		{name: "knows no socket", flags: asking, fill: true,
			mistake: "socket: must be named by --socket or $BELLOWS_SOCKET, because this user has no home directory"},
		{name: "has no flags", flags: func(*Place, *cobra.Command) {}, fill: true,
			mistake: "socket: must be named by $BELLOWS_SOCKET, because"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"HOME", "BELLOWS_SERVER", "BELLOWS_SOCKET", "BELLOWS_STATE", "XDG_RUNTIME_DIR",
				"XDG_STATE_HOME"} {
				t.Setenv(name, tt.env[name])
			}
			var p Place
			cmd := &cobra.Command{Use: "c"}
			tt.flags(&p, cmd)
			if err := cmd.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			var err error
			if tt.fill { // which does not look for a daemon of root
				err = p.Fill()
			} else {
				_, err = p.Client()
			}
			switch {
			case err == nil && tt.mistake != "", err != nil && (tt.mistake == "" || !strings.Contains(err.Error(), tt.mistake)):
				t.Errorf("%v, want %q", err, tt.mistake)
			}
		})
	}
}

func asking(p *Place, cmd *cobra.Command)  { p.Flags(cmd, false) }
func opening(p *Place, cmd *cobra.Command) { p.Flags(cmd, true) }

// What a user is to be told once is told once per state directory, and again where that cannot be noted.
func TestFirstTime(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state, what string
		want        bool
	}{
		{filepath.Join(home, "new", "state"), "a", true},
		{filepath.Join(home, "new", "state"), "a", false},
		{filepath.Join(home, "new", "state"), "b", true},
		{home, "a", true},
		{home, "a", false},
		{file, "a", true},
		{file, "a", true},
	} {
		p := Place{State: c.state}
		if got := p.FirstTime(c.what); got != c.want {
			t.Errorf("%s in %s: %v", c.what, c.state, got)
		}
	}
}
