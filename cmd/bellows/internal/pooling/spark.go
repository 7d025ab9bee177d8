package pooling

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/connector/spark"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/live/api"
)

// SparkExecutorCommand returns the command that bellows runs in the containers of executors of Spark.
func SparkExecutorCommand() *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:    spark.Command,
		Short:  "Be an executor of a pool of Spark, which bellows starts",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return spark.Run(cmd.Context(), home, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&home, "spark", "", "`folder` of the Spark installation")
	return cmd
}

// defaultSparkSize sets what the user does not state of a pool of Spark, and returns what is to be said of it.
func defaultSparkSize(s *api.PoolSpec, flex bool) (said []string) {
	switch {
	case s.Memory == 0 && flex:
		s.Memory = spark.DefaultStart
		said = append(said, fmt.Sprintf("memory: %s an executor at first, unless --memory says otherwise",
			resource.FormatMemory(s.Memory)))
	case s.Memory == 0:
		s.Memory = spark.DefaultMemory
		heap, _ := spark.Heap(spark.DefaultMemory)
		said = append(said, fmt.Sprintf("memory: %s an executor, of which the heap has %s, unless --memory says otherwise",
			resource.FormatMemory(s.Memory), resource.FormatMemory(resource.Amount(heap))))
	}
	if s.Max == 0 {
		s.Max = max(1, runtime.NumCPU()/int(cluster.Cores(s.CPU)), s.Min)
		said = append(said, fmt.Sprintf("max: at most %d executors, unless --max says otherwise", s.Max))
	}
	return said
}

// checkSpark checks what is special about a pool of Spark, before it is completed.
func (o *createOptions) checkSpark() error {
	switch {
	case len(o.spec.Command) > 0:
		return command.Usagef("spark: executors of Spark have no COMMAND")
	case o.spec.Language != "":
		return command.Usagef("language %s: is not for executors of Spark", o.spec.Language)
	case o.spec.Policy != api.DefaultPoolPolicy:
		return command.Usagef("policy %s: must be %s, since drivers of Spark start their own tasks", o.spec.Policy,
			api.DefaultPoolPolicy)
	}
	return nil
}

// checkHeap refuses executors whose heap would be too small for Spark. Those of class FLEX have the heap of the largest
// size, which is that of the node if it is not stated.
func checkHeap(s *api.PoolSpec, flex bool) error {
	if !flex {
		_, err := spark.Heap(int64(s.Memory))
		return err
	}
	if s.MaxMemory == 0 {
		return nil
	}
	if _, err := spark.Heap(int64(s.MaxMemory)); err != nil {
		return fmt.Errorf("max-%w", err)
	}
	return nil
}

// prepareSpark makes executors of Spark out of a pool, and compiles the connector.
func (o *createOptions) prepareSpark(ctx context.Context, said io.Writer) error {
	if err := o.checkSpark(); err != nil {
		return err
	}
	flex := o.class == flexClass
	o.sizes = defaultSparkSize(&o.spec, flex)
	if err := checkHeap(&o.spec, flex); err != nil {
		return command.Usage(err)
	}
	found, err := spark.Find(ctx, o.spark)
	if err != nil {
		return command.Usage(err)
	}
	java, err := spark.FindJava(ctx)
	if err != nil {
		return command.Usage(err)
	}
	slow := func() {
		fmt.Fprintf(said, "bellows: compiling the connector for Spark %s, once, some 10 s\n", found.Spark)
	}
	if o.connector, err = spark.Compile(ctx, found, java, slow); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.spec.Command = []string{self, spark.Command, "--spark", found.Home}
	return nil
}

// flexTimeout is for how long a driver waits for an executor whose container was stopped, until it takes it for lost:
// at least as long as containers are stopped.
const flexTimeout = "1h"

// sparkSubmit returns the line that submits a program to the pool.
func (o *createOptions) sparkSubmit() string {
	words := []string{"spark-submit", "--master", "spark-bellows://" + o.spec.Name, "--jars", quoted(o.connector.Jar)}
	if !o.place.Usual() {
		words = append(words, "--conf", quoted("spark.bellows.socket="+o.place.Socket))
	}
	if o.class == flexClass {
		words = append(words, "--conf", "spark.network.timeout="+flexTimeout)
	}
	return strings.Join(append(words, "PROGRAM"), " ")
}

// quoted returns a word for a shell.
func quoted(word string) string {
	if strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]{}~#!") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
