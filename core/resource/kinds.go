package resource

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kinds is a set of kinds. The zero Kinds is empty.
type Kinds uint8

// AllKinds is the set of all kinds.
const AllKinds = Kinds(1<<NumKinds - 1)

const _ = Kinds(1) << (NumKinds - 1) // does not compile if a kind has no bit

// KindsOf returns the set of the given kinds.
func KindsOf(kinds ...Kind) (s Kinds) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in s.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// In returns v with every component whose kind is in s set to a.
func (s Kinds) In(v Vector, a Amount) Vector {
	if s == 0 {
		return v
	}
	for k := range v {
		if s.Has(Kind(k)) {
			v[k] = a
		}
	}
	return v
}

// Fields returns the names of the kinds in job files and cluster files, in the order of kinds.
func (s Kinds) Fields() []string {
	var names []string
	for k := range NumKinds {
		if s.Has(k) {
			names = append(names, k.Field())
		}
	}
	return names
}

// String prints the fields, such as "disk, network". The empty set is "none".
func (s Kinds) String() string {
	if s == 0 {
		return "none"
	}
	return strings.Join(s.Fields(), ", ")
}

// MarshalJSON writes the list of the fields.
func (s Kinds) MarshalJSON() ([]byte, error) { return json.Marshal(append([]string{}, s.Fields()...)) }

// UnmarshalJSON reads a list of fields. A field of no kind is an error.
func (s *Kinds) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("kinds of resources: must be a list of names: %w", err)
	}
	*s = 0
	for _, name := range names {
		k, ok := kindNamed(name)
		if !ok {
			return fmt.Errorf("kind of resource %q: unknown", name)
		}
		*s |= KindsOf(k)
	}
	return nil
}

func kindNamed(field string) (Kind, bool) {
	for k := range NumKinds {
		if k.Field() == field {
			return k, true
		}
	}
	return 0, false
}
