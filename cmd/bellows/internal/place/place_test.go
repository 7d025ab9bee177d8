package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A daemon on the network is named by flags or the environment. Flags take precedence, and commands that open a state directory ask a
// daemon of this machine.
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
		{name: "environment", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_TOKEN_FILE": token}, remote: true},
		{name: "both", env: map[string]string{"BELLOWS_SERVER": "http://h", "BELLOWS_TOKEN_FILE": token}, args: []string{"--server", "https://h:1"}, remote: true},
		{name: "environment and a socket", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_SOCKET": socket, "BELLOWS_TOKEN_FILE": token}, remote: true},
		{name: "environment and the flag of a socket", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_TOKEN_FILE": token}, args: []string{"--socket", socket}},
		{name: "a state directory", env: map[string]string{"BELLOWS_SERVER": "https://h:1", "BELLOWS_TOKEN_FILE": token}, withState: true},
		{name: "both flags", args: []string{"--server", "https://h:1", "--token-file", token, "--socket", socket}, mistake: "socket, server: only one of them can be given"},
		{name: "no token", args: []string{"--server", "https://h:1"}, mistake: "needs a token"},
		{name: "a token without a server", args: []string{"--token-file", token}, mistake: "token-file, ca-file: need --server"},
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
