package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// object is a JSON object.
type object = map[string]any

// within returns the object at a path of names in an object; nil if there is none.
func within(o object, names ...string) object {
	for _, name := range names {
		o, _ = o[name].(object)
	}
	return o
}

func textsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, fmt.Sprint(one))
		}
	}
	return all
}

// comparison finds out whether clients that keep to one document of an API can use the API of another.
type comparison struct {
	was, is object
	seen    map[string]bool
	breaks  []string
}

// incompatible returns what has changed in a document so that a client can notice it, except for additions.
func incompatible(was, is object) []string {
	c := &comparison{was, is, map[string]bool{}, nil}
	for _, path := range slices.Sorted(maps.Keys(within(was, "paths"))) {
		for method := range within(was, "paths", path) {
			c.operation(strings.ToUpper(method)+" "+path, within(was, "paths", path, method), within(is, "paths", path, method))
		}
	}
	// Data of events stands in no operation.
	for name, s := range within(was, "components", "schemas") {
		if !c.seen["#/components/schemas/"+name] {
			c.schema(name, s, within(is, "components", "schemas")[name], false)
		}
	}
	slices.Sort(c.breaks)
	return c.breaks
}

func (c *comparison) say(where, format string, operands ...any) {
	c.breaks = append(c.breaks, where+" "+fmt.Sprintf(format, operands...))
}

func (c *comparison) operation(where string, was, is object) {
	if is == nil {
		c.say(where, "is gone")
		return
	}
	if was["operationId"] != is["operationId"] {
		c.say(where, "is called %v, and was %v", is["operationId"], was["operationId"])
	}
	c.parameters(where, was, is)
	c.body(where+" request", within(was, "requestBody"), within(is, "requestBody"))
	for status := range within(was, "responses") {
		answer := fmt.Sprintf("%s answer %s", where, status)
		w, n := within(was, "responses", status), within(is, "responses", status)
		if n == nil {
			c.say(answer, "is gone")
			continue
		}
		c.content(answer, within(w, "content"), within(n, "content"), false)
		for kind := range within(n, "content") {
			if within(w, "content")[kind] == nil {
				c.say(answer, "can be %s", kind)
			}
		}
	}
	for status := range within(is, "responses") {
		if status < "4" && within(was, "responses", status) == nil {
			c.say(where, "can be answered with %s", status)
		}
	}
}

func (c *comparison) parameters(where string, was, is object) {
	list := func(o object) map[string]object {
		all := map[string]object{}
		parameters, _ := o["parameters"].([]any)
		for _, p := range parameters {
			p := p.(object)
			all[fmt.Sprintf("%s parameter %s in %s", where, p["name"], p["in"])] = p
		}
		return all
	}
	w, n := list(was), list(is)
	for name, p := range w {
		if n[name] == nil {
			c.say(name, "is gone")
			continue
		}
		c.schema(name, p["schema"], n[name]["schema"], true)
	}
	for name, p := range n {
		if p["required"] == true && (w[name] == nil || w[name]["required"] != true) {
			c.say(name, "is required")
		}
	}
}

func (c *comparison) body(where string, was, is object) {
	switch {
	case was == nil && is["required"] == true, was != nil && is["required"] == true && was["required"] != true:
		c.say(where, "is required")
	case was != nil:
		c.content(where, within(was, "content"), within(is, "content"), true)
	}
}

func (c *comparison) content(where string, was, is object, sent bool) {
	for kind := range was {
		if is[kind] == nil {
			c.say(where, "cannot be %s", kind)
			continue
		}
		if s := within(was, kind)["schema"]; s != nil {
			c.schema(where, s, within(is, kind)["schema"], sent)
		}
	}
}

// schema compares the schemas of what a client sends, or receives.
func (c *comparison) schema(where string, was, is any, sent bool) {
	if _, ok := is.(object); !ok {
		c.say(where, "is gone")
		return
	}
	w, n := c.follow(c.was, was), c.follow(c.is, is)
	if ref, ok := was.(object)["$ref"]; ok {
		pair := fmt.Sprint(ref, is.(object)["$ref"], sent)
		if c.seen[pair] {
			return
		}
		c.seen[pair], c.seen[fmt.Sprint(ref)] = true, true
	}
	c.types(where, w, n, sent)
	c.bounds(where, w, n, sent)
	for name, p := range within(w, "properties") {
		c.schema(where+" "+name, p, within(n, "properties")[name], sent)
	}
	required, before := textsIn(n["required"]), textsIn(w["required"])
	if !sent {
		required, before = before, required
	}
	for _, name := range required {
		switch {
		case slices.Contains(before, name):
		case sent:
			c.say(where+" "+name, "is required")
		default:
			c.say(where+" "+name, "can be left out")
		}
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if s, ok := w[part].(object); ok {
			c.schema(where+" "+part, s, n[part], sent)
		}
	}
}

// follow returns a schema itself in place of a reference to it.
func (c *comparison) follow(in object, s any) object {
	o := s.(object)
	for {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o
		}
		o = within(in, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
}

func (c *comparison) types(where string, was, is object, sent bool) {
	before, now := textsIn(was["type"]), textsIn(is["type"])
	if !sent {
		before, now = now, before
	}
	accepted := func(t string) bool { return len(now) == 0 || slices.Contains(now, t) }
	if len(before) == 0 && len(now) > 0 || slices.ContainsFunc(before, func(t string) bool { return !accepted(t) }) {
		c.say(where, "is of type %v, and was of type %v", is["type"], was["type"])
	}
	if was["format"] != is["format"] && (sent || was["format"] != nil) {
		c.say(where, "has format %v, and had format %v", is["format"], was["format"])
	}
}

func (c *comparison) bounds(where string, was, is object, sent bool) {
	values := textsIn(is["enum"])
	for _, v := range textsIn(was["enum"]) {
		if values != nil && !slices.Contains(values, v) {
			c.say(where, "cannot be %s", v)
		}
	}
	if sent && values != nil && was["enum"] == nil {
		c.say(where, "must be one of %v", values)
	}
	for name, sign := range map[string]float64{"minimum": 1, "maximum": -1} {
		before, bounded := was[name].(float64)
		now, bound := is[name].(float64)
		switch {
		case sent && bound && (!bounded || sign*now > sign*before), !sent && bounded && (!bound || sign*now < sign*before):
			c.say(where, "has %s %v, and had %v", name, is[name], was[name])
		}
	}
}

func documentIn(t *testing.T, text []byte) (doc object) {
	t.Helper()
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func frozen(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile("testdata/openapi-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return documentIn(t, text)
}

// Version 1 of the API is stable: whoever keeps to the frozen document can use every later daemon.
// docs/reference/api.md says what may change, and when the document is frozen anew.
func TestFrozen(t *testing.T) {
	text := servedDocument(t)
	for _, what := range incompatible(frozen(t), documentIn(t, text)) {
		t.Errorf("%s: that is not stable", what)
	}
}

// Every kind of change that breaks a client is found, and no other.
func TestIncompatible(t *testing.T) {
	schema := func(d object, names ...string) object {
		return within(d, append([]string{"components", "schemas"}, names...)...)
	}
	property := func(d object, of, name string) object { return schema(d, of, "properties", name) }
	parameter := func(d object, path string, at int) object {
		return within(d, "paths", path, "get")["parameters"].([]any)[at].(object)
	}
	without := func(list any, text string) []any {
		all, _ := list.([]any) // nil is a list that is not there
		return slices.DeleteFunc(slices.Clone(all), func(v any) bool { return v == text })
	}
	tests := []struct {
		change func(d object)
		want   string // "" is compatible
	}{
		{func(object) {}, ""},
		{func(d object) { delete(within(d, "paths"), "/v1/jobs/{job}/explain") }, "GET /v1/jobs/{job}/explain is gone"},
		{func(d object) { delete(within(d, "paths", "/v1/jobs"), "post") }, "POST /v1/jobs is gone"},
		{func(d object) { within(d, "paths", "/v1/jobs", "get")["operationId"] = "list" },
			"GET /v1/jobs is called list, and was jobs"},
		{func(d object) {
			within(d, "paths", "/v1/jobs", "get")["parameters"] = []any{parameter(d, "/v1/jobs", 1)}
		}, "GET /v1/jobs parameter all in query is gone"},
		{func(d object) {
			parameter(d, "/v1/jobs", 1)["required"] = true
		}, "GET /v1/jobs parameter after in query is required"},
		{func(d object) { within(parameter(d, "/v1/jobs", 1), "schema")["minimum"] = 1.0 },
			"GET /v1/jobs parameter after in query has minimum 1, and had 0"},
		{func(d object) { within(parameter(d, "/v1/jobs", 1), "schema")["type"] = "string" },
			"GET /v1/jobs parameter after in query is of type string, and was of type integer"},
		{func(d object) { within(d, "paths", "/v1/prune", "post")["requestBody"] = object{"required": true} },
			"POST /v1/prune request is required"},
		{func(d object) {
			delete(within(d, "paths", "/v1/jobs", "post", "requestBody", "content"), "application/json")
		}, "POST /v1/jobs request cannot be application/json"},
		{func(d object) {
			r := within(d, "paths", "/v1/jobs", "post", "responses")
			r["202"] = r["201"]
		}, "POST /v1/jobs can be answered with 202"},
		{func(d object) { delete(within(d, "paths", "/v1/jobs", "post", "responses"), "201") },
			"POST /v1/jobs answer 201 is gone"},
		{func(d object) {
			c := within(d, "paths", "/v1/jobs", "get", "responses", "200", "content")
			c["text/plain"] = c["application/json"]
		}, "GET /v1/jobs answer 200 can be text/plain"},
		{func(d object) { delete(schema(d, "Job", "properties"), "id") }, "id is gone"},
		{func(d object) { property(d, "Job", "id")["type"] = "string" }, "id is of type string, and was of type integer"},
		{func(d object) { property(d, "Job", "id")["format"] = "int32" }, "id has format int32, and had format int64"},
		{func(d object) { property(d, "Job", "uid")["minimum"] = -1.0 }, "uid has minimum -1, and had 0"},
		{func(d object) { schema(d, "Job")["required"] = without(schema(d, "Job")["required"], "id") }, "id can be left out"},
		{func(d object) { property(d, "Job", "stages")["type"] = []any{"array", "null", "object"} }, "stages is of type"},
		{func(d object) {
			within(property(d, "Learned", "variants"), "items")["$ref"] = "#/components/schemas/Learned"
		}, "variants items"},
		{func(d object) {
			s := schema(d, "Submission")
			s["required"] = append(without(s["required"], ""), "name")
		}, "POST /v1/jobs request name is required"},
		{func(d object) { property(d, "Submission", "weight")["maximum"] = 5.0 }, "weight has maximum 5, and had <nil>"},
		{func(d object) { property(d, "Submission", "class")["enum"] = []any{"flex"} }, "class must be one of [flex]"},
		{func(d object) { property(d, "Submission", "name")["format"] = "uri" }, "name has format uri, and had format <nil>"},
		{func(d object) { p := property(d, "NewToken", "scope"); p["enum"] = without(p["enum"], "read") },
			"scope cannot be read"},
		{func(d object) { delete(schema(d, "Update", "properties"), "revision") }, "Update revision is gone"},
		{func(d object) { delete(schema(d), "Dropped") }, "Dropped is gone"},

		{func(d object) { within(d, "paths")["/v1/more"] = object{"get": object{"operationId": "more"}} }, ""},
		{func(d object) {
			o := within(d, "paths", "/v1/jobs", "get")
			o["parameters"] = append(o["parameters"].([]any),
				object{"name": "more", "in": "query", "schema": object{"type": "string"}})
			o["summary"] = "List them"
		}, ""},
		{func(d object) {
			within(d, "paths", "/v1/jobs", "get", "responses")["429"] = object{"description": "Slow down"}
		}, ""},
		{func(d object) {
			schema(d, "Job", "properties")["more"] = object{"type": "string"}
			s := schema(d, "Job")
			s["required"] = append(without(s["required"], ""), "more")
		}, ""},
		{func(d object) { schema(d, "Submission", "properties")["more"] = object{"type": "string"} }, ""},
		{func(d object) { schema(d, "Submission")["required"] = []any{} }, ""},
		{func(d object) {
			p := property(d, "NewToken", "scope")
			p["enum"] = append(without(p["enum"], ""), "weary")
		}, ""},
		{func(d object) { delete(within(parameter(d, "/v1/jobs", 1), "schema"), "minimum") }, ""},
		{func(d object) { property(d, "Job", "uid")["maximum"] = 1000.0 }, ""},
		{func(d object) { schema(d)["More"] = object{"type": "object"} }, ""},
		{func(d object) { property(d, "Job", "id")["description"] = "another" }, ""},
	}
	was := frozen(t)
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		is := documentIn(t, bytes.Clone(text))
		tt.change(is)
		got := incompatible(was, is)
		if ok := slices.ContainsFunc(got, func(what string) bool {
			return strings.Contains(what, tt.want)
		}); tt.want != "" && !ok || tt.want == "" && len(got) > 0 {
			t.Errorf("change %d: found %q, want %q", i, got, tt.want)
		}
	}
	if n := len(slices.Collect(maps.Keys(within(was, "paths")))); n < 15 { // there were more when this was written
		t.Errorf("the frozen document has %d paths", n)
	}
}
