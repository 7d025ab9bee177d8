package machine

import (
	"bytes"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

// The lifetime of a token is a number of days or a duration, and is printed as it is given.
func TestLifetimes(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 30 * day, "365d": 365 * day, "12h": 12 * time.Hour,
		"90s": 90 * time.Second, "48h": 2 * day} {
		var d time.Duration
		flag := lifetimeFlag(&d)
		if err := flag.Set(text); err != nil || d != want {
			t.Errorf("%s is %v, %v", text, d, err)
		}
		again := d
		if err := lifetimeFlag(&again).Set(flag.String()); err != nil || again != d {
			t.Errorf("%s is printed as %s: %v", text, flag, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "366d", "-1d", "1.5d", "59s", "8761h", "30", "99999999999d", "1y"} {
		var d time.Duration
		if err := lifetimeFlag(&d).Set(text); err == nil || d != 0 {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestPrintTokens(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	if err := printTokens(&b, []api.Token{
		{ID: 1, User: "ada", Scope: api.SubmitScope, Created: now.Add(-50 * time.Hour), Expires: now.Add(28 * day),
			Used: now.Truncate(time.Hour)},
		{ID: 2, User: "ada", Scope: api.ReadScope, Created: now.Add(-40 * day), Expires: now},
		{ID: 30, User: "a-user-with-a-long-name", Scope: api.AdminScope, Created: now.Add(-time.Minute),
			Expires: now.Add(day), Revoked: now},
	}, now); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, "views/tokens.txt", b.Bytes())
}
