package trial

import "testing"

// TestParseContender: settings follow colons; a part without = belongs to the value before it.
func TestParseContender(t *testing.T) {
	settings := map[string]string{"yarn-me.timeline": "sum"}
	plain, err := ParseContender("yarn-me", settings)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseContender("yarn-me@pool@4GB:timeline=resimulate:granularity=a:b", settings)
	if err != nil {
		t.Fatal(err)
	}
	if got := plain.AllSettings()["yarn-me.timeline"]; got != "sum" {
		t.Errorf("a setting of another contender: %s", got)
	}
	all := c.AllSettings()
	if c.Policy != "yarn-me" || !c.Pooled || c.Box.String() != "4GB" || all["yarn-me.timeline"] != "resimulate" ||
		all["yarn-me.granularity"] != "a:b" {
		t.Errorf("%+v", c)
	}
	for text, want := range map[string]string{
		"fair:fast": `policy "fair:fast": "fast" must be SETTING=VALUE`,
		"fair:=1":   `policy "fair:=1": "=1" must be SETTING=VALUE`,
		"fair@much": `policy "fair@much": what follows @ must be pool, peak or a positive amount of memory`,
		"fair@0GB":  `policy "fair@0GB": what follows @ must be pool, peak or a positive amount of memory`,
	} {
		if _, err := ParseContender(text, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
