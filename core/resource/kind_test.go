package resource

import "testing"

// Every row of the table is complete, and no two rows share a name.
func TestKinds(t *testing.T) {
	names, fields := map[string]Kind{}, map[string]Kind{}
	for k := range NumKinds {
		r := &kinds[k]
		if r.name == "" || r.field == "" || r.unit == "" || r.parse == nil || r.format == nil || r.exact == nil ||
			r.work == "" ||
			r.workSize < 1 || r.most < 1 {
			t.Errorf("kind %d: the row %+v is not complete", k, *r)
			continue
		}
		if other, taken := names[r.name]; taken {
			t.Errorf("kinds %d and %d are both named %s", other, k, r.name)
		}
		if other, taken := fields[r.field]; taken {
			t.Errorf("kinds %d and %d are both field %s", other, k, r.field)
		}
		names[r.name], fields[r.field] = k, k
		for _, a := range []Amount{0, 1, r.most} {
			if back, err := k.Parse(k.FormatExact(a)); err != nil || back != a {
				t.Errorf("%v: %d printed as %q is read as %d, %v", k, a, k.FormatExact(a), back, err)
			}
		}
	}
}

// An old program may read a record that names a kind it does not know.
func TestKindOfLaterVersion(t *testing.T) {
	if later := NumKinds; later.String() != "unknown" || later.Format(1) == "" {
		t.Errorf("got %q, %q", later, later.Format(1))
	}
}

// Where the unit says of what an amount is, the name of the kind is not repeated.
func TestFormatOf(t *testing.T) {
	for k, want := range map[Kind]string{CPU: "2 cores", Memory: "2GB of memory", Disk: "2GB/s of disk",
		Network: "2GB/s of network"} {
		a := Amount(2 * GB)
		if k == CPU {
			a = 2 * Core
		}
		if got := k.FormatOf(a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := CPU.FormatOf(Unbounded); got != "unknown of cpu" {
		t.Errorf("got %q", got)
	}
}
