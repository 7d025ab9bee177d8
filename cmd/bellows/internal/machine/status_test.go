package machine

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

// The status fits a terminal, and prints trouble below the normal values.
func TestStatus(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	err := printStatus(&b, &api.Status{
		Daemon: api.Daemon{Version: "1.2.3", PID: 4711, State: "/var/lib/bellows",
			Configuration: &api.Configuration{File: "/etc/bellows/bellows.yaml",
				Waiting: []string{"memory", "set fair.reservations"},
				Mistake: "/etc/bellows/bellows.yaml:7: keep_for 1: write a number and one of ms, s, m, h, such as 90s"},
			Listens: &api.Listens{Address: "192.0.2.7:8443", Certificate: now.Add(20 * day)}},
		ClusterStatus: api.ClusterStatus{Policy: "yarn-me", Since: now.Add(-50 * time.Hour), Jobs: 2, Running: 1,
			Pending: 282,
			Slack: api.Slack{Now: api.SlackOf{Tasks: 3, Open: 1, Asked: 72 << 30, Reserved: 5 << 30, Used: 4 << 30},
				Past: api.SlackOf{Tasks: 12, Open: 12, Reserved: 600 << 20, Used: 432 << 20}},
			Trouble:        "write the event log /var/lib/bellows/events/000007.jsonl: no space left on device",
			NetworkUnknown: "count network bytes: it needs CAP_SYS_ADMIN",
			Crowded: "other bellows daemons manage 4GiB of this machine, and this one 128GiB: together more than " +
				"its 130GiB; give each a part of it with `bellows up --memory`",
			Nodes: []api.Node{{Name: "a-machine-with-a-name", CPU: 16000, Memory: 1 << 37, FreeCPU: 12500,
				FreeMemory: 1 << 36, HeldMemory: 120 << 30, LeftMemory: 8 << 30, UsedMemory: 223 << 20,
				UsedAnonymous: 123 << 20, Containers: 3},
				{Name: "measured", CPU: 1000, Memory: 1 << 30, FreeCPU: 1000, FreeMemory: 1 << 30, LeftMemory: 1 << 30,
					Disk: 110e6, DiskGives: 37e6, Network: 125e6, FreeDisk: new(int64(30e6)), FreeNetwork: new(int64(125e6)),
					Leveling: &api.Leveling{Node: "measured",
						Result: "value 14, bound 12.5, gap 10.8 %, 400,000 states; not used, because the node changed while it was " +
							"solved"}},
				{Name: "told-nothing", CPU: 1000, Memory: 1 << 30, FreeCPU: 1000, FreeMemory: 1 << 30,
					LeftMemory: 1 << 30, Unknown: []string{"disk", "network"}}}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminal.Width {
			t.Errorf("%d columns, more than %d: %s", n, terminal.Width, line)
		}
	}
	testfile.Golden(t, "views/status.txt", b.Bytes())
}
