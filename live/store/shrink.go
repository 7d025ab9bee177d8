package store

import (
	"context"
	"fmt"
)

// Pages of a store that nothing uses are kept for what is written next: a quarter of all, and at least leastSpare.
// shrinkStep pages are returned at a time, so that others write in between.
const (
	leastSpare = 1000 // pages of 4 KiB
	shrinkStep = 1000
)

// Shrink returns to the disk most of the space that deleted rows have left. A store that was made before stores could
// shrink stays as large as it is.
func (s *Store) Shrink(ctx context.Context) error {
	for {
		var mode, all, unused int
		query := `SELECT auto_vacuum, page_count, freelist_count FROM pragma_auto_vacuum, pragma_page_count, pragma_freelist_count`
		if err := s.read(ctx, query, nil, func(scan func(...any) error) error {
			return scan(&mode, &all, &unused)
		}); err != nil {
			return err
		}
		n := min(shrinkStep, unused-max(leastSpare, all/4))
		if n <= 0 || mode != incrementalVacuum {
			return nil
		}
		if err := s.vacuum(ctx, n); err != nil {
			return s.explain("shrink", err)
		}
	}
}

const incrementalVacuum = 2 // PRAGMA auto_vacuum = INCREMENTAL

// vacuum returns n pages. The statement has no rows, and returns a page with each step.
func (s *Store) vacuum(ctx context.Context, n int) error {
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", n))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
