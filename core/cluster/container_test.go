package cluster

import "testing"

func TestContainerID(t *testing.T) {
	id := ContainerID{TaskID{7, 0, 12}, 1}
	if got := id.String(); got != "7-0-12-1" {
		t.Errorf("printed %s", got)
	}
	for _, text := range []string{"", "7", "7-0-12", "7-0-12-1-", "7-0-12-1x", " 7-0-12-1", "07-0-12-1", "+7-0-12-1",
		"7.0.12-1", "supervisors", "7-0-99999999999-1"} {
		if got, err := ParseContainerID(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func FuzzParseContainerID(f *testing.F) {
	f.Add("7-0-12-1")
	f.Add("9223372036854775807-2147483647-2147483647-9223372036854775807")
	f.Add("-1-0-0-1")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseContainerID(text); err == nil && id.String() != text {
			t.Errorf("%q is read as %v", text, id)
		}
	})
}
