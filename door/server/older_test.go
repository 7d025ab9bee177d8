package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// exchange is a request of a client, and what it was answered.
type exchange struct {
	Method  string          `json:"method"`
	Address string          `json:"address"`
	Body    json.RawMessage `json:"body,omitempty"`
	Status  int             `json:"status"`
	Answer  json.RawMessage `json:"answer,omitempty"` // JSON
	Text    string          `json:"text,omitempty"`   // anything else
}

// ofOneDaemon are fields whose values belong to one daemon, or to one run of a test.
var ofOneDaemon = []string{"pid", "uid", "made", "stdout", "stderr"}

// lacks returns where a value lacks what another has: a field, an element, or the same scalar. The value may have more fields.
func lacks(where string, has, value any) []string {
	switch has := has.(type) {
	case map[string]any:
		o, ok := value.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v", where, value)}
		}
		var all []string
		for name, v := range has {
			one, there := o[name]
			switch {
			case !there:
				all = append(all, where+"."+name+" is not there")
			case slices.Contains(ofOneDaemon, name):
				if fmt.Sprintf("%T", one) != fmt.Sprintf("%T", v) {
					all = append(all, fmt.Sprintf("%s.%s is %v", where, name, one))
				}
			default:
				all = append(all, lacks(where+"."+name, v, one)...)
			}
		}
		return all
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(has) {
			return []string{fmt.Sprintf("%s is %v", where, value)}
		}
		var all []string
		for i := range has {
			all = append(all, lacks(fmt.Sprintf("%s[%d]", where, i), has[i], list[i])...)
		}
		return all
	}
	if has != value {
		return []string{fmt.Sprintf("%s is %v, and was %v", where, value, has)}
	}
	return nil
}

// The exchanges in testdata/older-client.json were recorded between a client and a daemon of the time before errors were problems and
// submissions had keys. The daemon of today answers the same requests with at least the same.
func TestOlderClient(t *testing.T) {
	text, err := os.ReadFile("testdata/older-client.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []exchange
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("there are only %d exchanges", len(all))
	}
	c, _, _ := startDescribed(t, newLavish(t, fill), newFakeStore())
	for _, e := range all {
		request, err := http.NewRequest(e.Method, "http://bellows"+e.Address, strings.NewReader(string(e.Body)))
		if err != nil {
			t.Fatal(err)
		}
		if e.Body != nil {
			request.Header.Set("Content-Type", "application/json")
		}
		r, err := c.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != e.Status || e.Answer == nil && string(got) != e.Text {
			t.Errorf("%s %s: %s %s, %v, want %d %s", e.Method, e.Address, r.Status, got, err, e.Status, e.Text)
			continue
		}
		if e.Answer == nil {
			continue
		}
		var was, is any
		if json.Unmarshal(e.Answer, &was) != nil || json.Unmarshal(got, &is) != nil {
			t.Errorf("%s %s: %s", e.Method, e.Address, got)
		}
		for _, what := range lacks("the answer", was, is) {
			t.Errorf("%s %s: %s", e.Method, e.Address, what)
		}
	}
}
