package demo

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim/trial"
)

// contender is one way to give memory to the programs of a part.
type contender struct {
	trial.Contender // its label is its name
	// about describes the memory of a task, or of a container, in a few words.
	about string
	class cluster.Class
	// size returns the memory of a task that needs most to run well, and least to run at all: for life, or in FLEX
	// containers at the start. nil leaves it to the policy.
	size func(most, least resource.Amount) resource.Amount
}

// fair returns a contender under the policy fair.
func fair(name, about string, class cluster.Class, size func(most, least resource.Amount) resource.Amount) contender {
	return contender{trial.Contender{Label: name, Policy: "fair"}, about, class, size}
}

func whole(most, _ resource.Amount) resource.Amount     { return most }
func smallest(_, least resource.Amount) resource.Amount { return least }

// half returns half of most, in whole MiB.
func half(most, least resource.Amount) resource.Amount {
	return max(least, (most/2+resource.MiB-1)/resource.MiB*resource.MiB)
}

// The contenders of the part elastic, the elastic one last, and of the parts flex and real, FLEX last. The others are
// compared with the last.
var (
	sizings = []contender{
		fair("fair ideal", "every task gets its ideal memory", cluster.Regular, nil),
		fair("fixed half", "every task gets half its ideal memory", cluster.Regular, half),
		fair("fixed minimum", "every task gets the least it runs with", cluster.Regular, smallest),
		{trial.Contender{Label: "yarn-me", Policy: "yarn-me", Settings: map[string]string{"yarn-me.granularity": "4MiB"}},
			"ideal memory, or less where that ends no later than the job", cluster.Regular, nil},
	}
	allocations = []contender{
		fair("static peak", "REGULAR containers, each of the size that the largest job of its program needs",
			cluster.Regular, whole),
		fair("static half", "REGULAR containers of half that size", cluster.Regular, half),
		fair("FLEX", "FLEX containers that begin with a little and breathe", cluster.Flex, smallest),
	}
	elastic, breathing = &sizings[len(sizings)-1], &allocations[len(allocations)-1]
	// alone is the contender of a mix without jobs: only short jobs run.
	alone = fair("none", "the short jobs alone", cluster.Regular, nil)
)
