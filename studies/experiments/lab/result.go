package lab

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/format/workload"
)

// Result is the full result of an experiment.
type Result struct {
	Summary  Summary
	Data     []Table
	Pictures []Picture
}

// Summary is the part of a result that is kept with the project and shown in the report.
type Summary struct {
	Version    int              `json:"bellows_experiment"`
	Experiment string           `json:"experiment"`
	Title      string           `json:"title"`
	Paper      string           `json:"paper"`
	Setup      []string         `json:"setup"`
	Needs      []string         `json:"needs,omitempty"` // folders of recorded data
	Unit       string           `json:"unit,omitempty"`
	Runs       int              `json:"runs,omitempty"`
	Full       bool             `json:"full"` // at the paper's scale
	FullRuns   int              `json:"full_runs,omitempty"`
	Seed       uint64           `json:"seed"`
	Claims     []Claim          `json:"claims"`
	Tables     []Table          `json:"tables"`
	Pictures   []SummaryPicture `json:"pictures"`
	Notes      []string         `json:"notes"`
}

// SummaryPicture names a picture in the folder of the summary.
type SummaryPicture struct {
	File    string `json:"file"`
	Caption string `json:"caption"`
}

const summaryVersion = 1

func (e *Experiment) summary(s Settings, f *Findings) Summary {
	m := Summary{
		Version: summaryVersion, Experiment: e.Name, Title: e.Title, Paper: e.Paper, Setup: e.Setup, Needs: e.Needs,
		Unit: e.Unit,
		Runs: s.Runs, Full: s.Full, FullRuns: e.Full, Seed: s.Seed,
		Claims: f.Claims, Tables: f.Tables, Pictures: []SummaryPicture{}, Notes: slices.Concat(e.Notes, f.Notes),
	}
	for _, p := range f.Pictures {
		m.Pictures = append(m.Pictures, SummaryPicture{PictureFile(e.Name, p.Name), p.Caption})
	}
	return m
}

// FileName returns the prefix of the names of an experiment's files.
func FileName(experiment string) string { return strings.ReplaceAll(experiment, "/", "-") }

// PictureFile returns the name of the file of a picture.
func PictureFile(experiment, name string) string {
	return FileName(experiment) + "-" + name + ".svg"
}

// JSON returns the summary as it is stored.
func (m *Summary) JSON() ([]byte, error) {
	text := new(bytes.Buffer)
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("print the summary of %s: %w", m.Experiment, err)
	}
	return text.Bytes(), nil
}

// Save writes the result into a folder, which it makes if necessary: the summary, pictures, and data as CSV and JSON.
// The summary is written last, each file is complete or absent, and a folder without the summary has no result. Data is
// omitted if small is set.
func (r *Result) Save(dir string, small bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of results: %w", err)
	}
	name := FileName(r.Summary.Experiment)
	save := func(file string, text []byte) error {
		return workload.SaveFile(filepath.Join(dir, file), workload.Plain, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	for _, p := range r.Pictures {
		text, err := p.SVG()
		if err != nil {
			return fmt.Errorf("draw %s of %s: %w", p.Name, r.Summary.Experiment, err)
		}
		if err := save(PictureFile(r.Summary.Experiment, p.Name), text); err != nil {
			return err
		}
	}
	if !small {
		for _, t := range r.Data {
			text, err := t.csv()
			if err != nil {
				return err
			}
			if err := save(name+"-"+t.Name+".csv", text); err != nil {
				return err
			}
		}
		text, err := json.MarshalIndent(map[string]any{"experiment": r.Summary.Experiment, "tables": r.Data}, "", " ")
		if err != nil {
			return fmt.Errorf("print the data of %s: %w", r.Summary.Experiment, err)
		}
		if err := save(name+"-data.json", append(text, '\n')); err != nil {
			return err
		}
	}
	text, err := r.Summary.JSON()
	if err != nil {
		return err
	}
	return save(name+".json", text)
}

func (t *Table) csv() ([]byte, error) {
	text := new(bytes.Buffer)
	w := csv.NewWriter(text)
	if err := w.WriteAll(append([][]string{t.Heads}, t.Rows...)); err != nil {
		return nil, fmt.Errorf("print table %s: %w", t.Name, err)
	}
	return text.Bytes(), nil
}

// Stored returns the settings of the result of e that is stored in a folder. ok is false if there is none.
func (e *Experiment) Stored(dir string) (s Settings, ok bool, err error) {
	m, ok, err := ReadSummary(dir, e.Name)
	return Settings{Runs: m.Runs, Full: m.Full, Seed: m.Seed}, ok, err
}

// CheckOverwrite returns an error if a folder has a result of e with more runs than the settings request, because that
// result took longer and says more.
func (e *Experiment) CheckOverwrite(dir string, s Settings) error {
	stored, ok, err := e.Stored(dir)
	if err != nil || !ok || e.runs(s) >= stored.Runs && (s.Full || !stored.Full) {
		return err
	}
	scale := ""
	if stored.Full {
		scale = ", of the paper's scale,"
	}
	return fmt.Errorf("%s: the result in %q is of %d %s%s and must not be replaced with %d: give as many, or "+
		"another --out", e.Name, dir, stored.Runs, e.Unit, scale, e.runs(s))
}

// ReadSummary reads the summary of an experiment. ok is false if none is stored in the folder.
func ReadSummary(dir, name string) (m Summary, ok bool, err error) {
	file := filepath.Join(dir, FileName(name)+".json")
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read results: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, false, fmt.Errorf("%s: is no summary of an experiment: %w", file, err)
	}
	if m.Version != summaryVersion || m.Experiment != name {
		return m, false, fmt.Errorf("%s: bellows_experiment %d of %q: must be %d of %q", file, m.Version, m.Experiment,
			summaryVersion, name)
	}
	return m, true, nil
}
