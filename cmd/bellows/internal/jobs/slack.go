package jobs

import (
	"fmt"

	"github.com/bellows-rm/bellows/live/api"
)

// SlackWords says what was asked for tasks, reserved for them and used; print prints bytes.
func SlackWords(s *api.SlackOf, print func(int64) string) string {
	return fmt.Sprintf("asked %s, reserved %s, used %s", AskedWords(s, print), print(s.Reserved), print(s.Used))
}

// AskedWords says what was asked for tasks: "-" if no limit was, and by how many it was if not by all.
func AskedWords(s *api.SlackOf, print func(int64) string) string {
	switch limited := s.Tasks - s.Open; {
	case limited == 0:
		return "-"
	case s.Open > 0:
		return fmt.Sprintf("%s by %d", print(s.Asked), limited)
	}
	return print(s.Asked)
}
