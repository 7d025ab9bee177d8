package sparkstream

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// driver is an application: a process of session.py, which does what it is asked for.
type driver struct {
	name  string
	in    io.WriteCloser
	lines *bufio.Scanner
	log   string // path
	cmd   *exec.Cmd
}

// driver starts an application. args are those of spark-submit.
func (s *study) driver(ctx context.Context, name string, args ...string) (*driver, error) {
	d := &driver{name: name, log: filepath.Join(s.work, name+".log")}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.cmd = exec.CommandContext(ctx, "python3", filepath.Join(s.Programs, "session.py"))
	d.cmd.Dir, d.cmd.Stderr = s.work, log
	d.cmd.Env = append(s.env(), "PYSPARK_SUBMIT_ARGS="+strings.Join(append(args, "pyspark-shell"), " "))
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.lines = bufio.NewScanner(out)
	d.lines.Buffer(nil, 16<<20)
	return d, d.cmd.Start()
}

// close ends the application.
func (d *driver) close() error {
	if err := d.in.Close(); err != nil {
		return err
	}
	for d.lines.Scan() {
	}
	return d.cmd.Wait()
}

// ask makes the application do something, and returns what it answers.
func (d *driver) ask(do string, arguments map[string]any) (json.RawMessage, error) {
	order := map[string]any{"do": do}
	maps.Copy(order, arguments)
	if err := json.NewEncoder(d.in).Encode(order); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", d.name, do, err)
	}
	for d.lines.Scan() {
		text, is := strings.CutPrefix(d.lines.Text(), "RESULT ")
		if !is {
			continue
		}
		var said struct {
			OK    json.RawMessage `json:"ok"`
			Error string          `json:"error"`
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.name, do, err)
		} else if said.Error != "" {
			return nil, fmt.Errorf("%s: %s: %s", d.name, do, said.Error)
		}
		return said.OK, nil
	}
	log, _ := os.ReadFile(d.log)
	return nil, fmt.Errorf("%s: %s: it has ended: %s", d.name, do, log[max(0, len(log)-2000):])
}

// query runs a query, and returns the hash of its rows, with numbers rounded so that sums may be in any order.
func (d *driver) query(number int) (rows string, err error) {
	answer, err := d.ask("query", map[string]any{"number": number})
	if err != nil {
		return "", err
	}
	var all [][]any
	if err := json.Unmarshal(answer, &all); err != nil {
		return "", fmt.Errorf("%s: query %d: %w", d.name, number, err)
	}
	sum := sha256.New()
	for _, row := range all {
		for _, v := range row {
			if x, is := v.(float64); is {
				v = fmt.Sprintf("%.7g", x)
			}
			fmt.Fprintf(sum, "%v\t", v)
		}
		fmt.Fprintln(sum)
	}
	return fmt.Sprintf("%d rows, %s", len(all), hex.EncodeToString(sum.Sum(nil)[:8])), nil
}
