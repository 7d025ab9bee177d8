package fault

import (
	"encoding/json"
	"testing"
)

type Inner struct {
	Name string `json:"name,omitempty"`
	Off  int    `json:"-"`
}

type own struct{ Inner }

func (o *own) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.Inner) }

type outer struct {
	*Inner
	Deep []struct {
		More map[string]Inner `json:"more"`
		List [2]Inner         `json:"list"`
	} `json:"deep"`
	Own   own    `json:"own"`
	Maybe *Inner `json:"maybe"`
}

// An unknown field is named with its place and the names that may stand there, wherever it is.
func TestUnknownField(t *testing.T) {
	for text, want := range map[string]string{
		`{"nme":1}`: "nme: unknown field; must be one of name, deep, own, maybe; did " +
			"you mean name?",
		`{"name":"a","deep":[{},{"lst":[]}]}`: "deep[1].lst: unknown field; must be one of more, list; did you " +
			"mean list?",
		`{"deep":[{"list":[{},{"Off":1}]}],"x":1}`:   "deep[0].list[1].Off: unknown field; must be one of name",
		`{"maybe":{"NAME":"a","n":"b"}}`:             "maybe.n: unknown field; must be one of name",
		`{"own":{"anything":1},"maybe":null,"y":{}}`: "y: unknown field; must be one of name, deep, own, maybe",
		`{"name":"a"} {}`:                            "must be one value in a line, but more follows",
		`{"name":1}`:                                 "name: must not be a number",
		`{"name":`:                                   "must be a JSON object, but the line ends within it",
		``:                                           "must be a JSON object, but the line is empty",
	} {
		err := DecodeLine([]byte(text), &outer{})
		if err == nil || OfJSON(err) != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if err := DecodeLine([]byte(`{"own":{"anything":1},"Name":"a","deep":[{"more":{"k":{}}}]}`), &outer{}); err != nil {
		t.Error(err)
	}
}
