package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Profile is what measurements of a command at several sizes have shown. It belongs to the user who measured the
// command.
type Profile struct {
	UID  uint32        `json:"-"`
	User string        `json:"-"`
	Name string        `json:"-"`
	Made timeline.Time `json:"-"`
	// IdealMemory is the least memory, in bytes, at which the command runs at full speed; MinMemory is the least memory
	// at which a run succeeded.
	IdealMemory resource.Amount `json:"ideal_memory_bytes"`
	MinMemory   resource.Amount `json:"min_memory_bytes"`
	// Duration is the run time at ideal memory.
	Duration time.Duration `json:"duration_ns"`
	// Elasticity is the cost of less memory.
	Elasticity cluster.Elasticity `json:"elasticity"`
	// Args is the command that was measured, with its placeholders.
	Args []string `json:"args,omitempty"`
	// Evidence is optional material of the measurement, such as samples and errors.
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// PutProfile stores a profile and replaces the owner's profile of the same name.
func (s *Store) PutProfile(ctx context.Context, p Profile) error {
	if p.Name == "" {
		return fmt.Errorf("profile name %q: must not be empty", p.Name)
	}
	if err := p.Elasticity.Check(); err != nil {
		return fmt.Errorf("profile %q: %w", p.Name, err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("store profile %q: %w", p.Name, err)
	}
	return s.write(ctx, "write a profile to", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO profiles (owner_uid, owner_name, name, made_ns, body) VALUES (?, ?, ?, ?, ?)`,
			p.UID, p.User, p.Name, int64(p.Made), string(body))
		return err
	})
}

// Profile returns the owner's profile of that name, or ErrNotFound.
func (s *Store) Profile(ctx context.Context, uid uint32, name string) (Profile, error) {
	profiles, err := s.profiles(ctx, "WHERE owner_uid = ? AND name = ?", uid, name)
	if err != nil {
		return Profile{}, err
	}
	if len(profiles) == 0 {
		return Profile{}, fmt.Errorf("profile %q: %w", name, ErrNotFound)
	}
	return profiles[0], nil
}

// Profiles returns all profiles of an owner, by name.
func (s *Store) Profiles(ctx context.Context, uid uint32) ([]Profile, error) {
	return s.profiles(ctx, "WHERE owner_uid = ? ORDER BY name", uid)
}

func (s *Store) profiles(ctx context.Context, where string, args ...any) ([]Profile, error) {
	var profiles []Profile
	query := "SELECT owner_uid, owner_name, name, made_ns, body FROM profiles " + where
	err := s.read(ctx, query, args, func(scan func(...any) error) error {
		var p Profile
		var body string
		if err := scan(&p.UID, &p.User, &p.Name, &p.Made, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			return fmt.Errorf("profile %q: %w", p.Name, err)
		}
		profiles = append(profiles, p)
		return nil
	})
	return profiles, err
}
