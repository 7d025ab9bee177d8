package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesNameTests checks that the tests that documents of promises name are there.
func TestPromisesNameTests(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"durability.md", "reference/survives.md", "security.md", "reference/faults.md"} {
		named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(read(t, page), -1)
		if len(named) < 5 {
			t.Errorf("%s names only %d tests", page, len(named))
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
	}
}
