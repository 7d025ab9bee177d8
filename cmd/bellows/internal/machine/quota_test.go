package machine

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

func TestPrintQuotas(t *testing.T) {
	var out strings.Builder
	if err := printQuotas(&out, []api.QuotaUse{
		{User: "bob", Kind: cluster.QuotaMemory, Most: int64(100 * resource.MiB), Taken: new(int64(64 * resource.MiB))},
		{User: "bob", Kind: cluster.QuotaSubmissions, Most: 120, Taken: new(int64(3)), Refuses: true},
		{User: "bob", Kind: cluster.QuotaOutput, Most: int64(resource.GiB), Refuses: true},
		{Queue: "batch", Kind: cluster.QuotaCPU, Most: 8000, Taken: new(int64(2000))},
	}); err != nil {
		t.Fatal(err)
	}
	const want = `
OF             QUOTA          TAKEN              LIMIT  ABOVE IT
user bob       memory         64MiB             100MiB  waits
user bob       submissions   3 jobs  120 jobs a minute  refused
user bob       output             -               1GiB  refused
queue "batch"  cpus         2 cores            8 cores  waits
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("printed%s\nwant%s", got, want)
	}
	out.Reset()
	if err := printQuotas(&out, nil); err != nil || out.String() != "no quotas\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
