package cluster

import (
	"strconv"
	"strings"
)

// JobRanges names jobs, given by ascending ID, in short form: "1-3, 7, 9-12".
func JobRanges(ids []JobID) string {
	var words []string
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
			last++
		}
		word := strconv.FormatInt(int64(ids[i]), 10)
		if last > i {
			word += "-" + strconv.FormatInt(int64(ids[last]), 10)
		}
		words = append(words, word)
		i = last + 1
	}
	return strings.Join(words, ", ")
}
