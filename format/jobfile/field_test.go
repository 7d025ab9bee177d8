package jobfile

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
)

// A field of a stage cannot be forgotten: job files read and write it by its type, or specialFields say how.
func TestEveryFieldIsReadAndWritten(t *testing.T) {
	special := form.Special(&cluster.Stage{})
	for _, name := range special {
		if _, known := specialFields[name]; !known {
			t.Errorf("job files would drop the field %s of cluster.Stage, because package form does not know its type: "+
				"add a row to specialFields in stage.go that reads and writes it, or give it a type that isPlain in "+
				"format/form/field.go knows", name)
		}
	}
	for name := range specialFields {
		if !slices.Contains(special, name) {
			t.Errorf("specialFields has a row %s, but no field of cluster.Stage needs one: remove the row", name)
		}
	}
	for _, name := range append(form.Special(&cluster.Phase{}), form.Special(&workload.Heap{})...) {
		t.Errorf("job files would drop the field %s of a phase or a heap: give it a type that isPlain in "+
			"format/form/field.go knows", name)
	}
}

// Every field has the tags that its type needs.
func TestEveryFieldHasItsTags(t *testing.T) {
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			tag := func(name string) string { return f.Tag.Get(name) }
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				check(f.Type)
				continue
			}
			if _, written := f.Tag.Lookup("yaml"); !written {
				t.Errorf("field %s of %s has no tag yaml: job files would drop it", f.Name, of)
			}
			for _, name := range []string{"least", "most"} {
				if _, err := strconv.ParseInt(tag(name), 10, 64); tag(name) != "" && err != nil {
					t.Errorf("field %s of %s: tag %s: %v", f.Name, of, name, err)
				}
			}
			unitless := f.Type != reflect.TypeFor[time.Duration]() && f.Type != reflect.TypeFor[resource.Amount]()
			switch {
			case (f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Int64) && unitless && tag("most") == "":
				t.Errorf("field %s of %s needs the tag most, the largest number", f.Name, of)
			case f.Type.Kind() == reflect.String && tag("form") == "":
				t.Errorf("field %s of %s needs the tag form: name, or what a text must be", f.Name, of)
			}
		}
	}
	check(reflect.TypeFor[cluster.Stage]())
	check(reflect.TypeFor[cluster.Phase]())
	check(reflect.TypeFor[workload.Heap]())
}
