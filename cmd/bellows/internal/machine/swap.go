package machine

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/swap"
)

func swapCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "swap",
		Short: "Manage swap devices",
		Long: `Show, create and remove swap devices. FLEX containers whose memory other
containers need are swapped out; without swap, the youngest are requeued. No
daemon is needed; a running daemon uses the changed swap at once.`,
		Example: `  bellows swap create --size 4GiB
  bellows swap status`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(swapStatusCommand(), swapCreateCommand(), swapRemoveCommand())
	return cmd
}

// swapStatus is the output of `swap status --json`.
type swapStatus struct {
	Devices []swap.Device    `json:"devices" doc:"swap devices that are on, or that swap create made"`
	Size    resource.Amount  `json:"size_bytes" doc:"sum over devices that are on"`
	Free    resource.Amount  `json:"free_bytes" doc:"sum over devices that are on"`
	Zswap   *swap.Zswap      `json:"zswap,omitempty" doc:"the compressed cache in front of the devices; omitted if the kernel has none"`
	LastDay *resource.Amount `json:"written_last_day_bytes,omitempty" doc:"what swapping wrote to disks in the last 24 h, with at most one hour more"`
	Budget  resource.Amount  `json:"budget_bytes_per_day,omitempty" doc:"--swap-budget of bellows up; omitted if there is none"`
}

func swapStatusCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show swap devices and their use",
		Long: `Show the swap devices of this machine. The device with the highest PRIORITY is
filled first. WRITTEN is what swapping wrote to the device since the machine
started or the device was created, or - if that is not known, as for files that
bellows did not create. OURS are the devices that "bellows swap create" created
with the same state directory.`,
		Example: `  bellows swap status
  bellows swap status --json | jq .free_bytes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.Fill(); err != nil {
				return err
			}
			s, err := readSwap(p.State)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), s)
			}
			return printSwap(cmd.OutOrStdout(), &s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.StateFlag(cmd)
	return cmd
}

func readSwap(state string) (swapStatus, error) {
	ledger := swap.NewLedger(swap.Machine{}, state)
	devices, err := ledger.Devices()
	if err != nil {
		return swapStatus{}, err
	}
	zswap, err := ledger.Zswap()
	if err != nil {
		return swapStatus{}, err
	}
	s := swapStatus{Devices: terminal.OrEmpty(devices), Zswap: zswap}
	for i := range devices {
		if devices[i].On {
			s.Size += devices[i].Size
		}
		s.Free += devices[i].Free()
	}
	spent, perDay, err := swap.LastDay(swap.Machine{}, swap.BudgetPath(state))
	if err == nil {
		s.LastDay, s.Budget = &spent, perDay
	}
	return s, nil
}

func printSwap(w io.Writer, s *swapStatus) error {
	if len(s.Devices) == 0 {
		fmt.Fprintln(w, "This machine does not swap: `bellows swap create --size 4GiB` creates a swap file.")
	} else if err := printSwapDevices(w, s.Devices); err != nil {
		return err
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if c := d.Compressed; c != nil && c.Memory > 0 {
			fmt.Fprintf(w, "%s takes %s of memory for %s (%s)\n", d.Path, resource.FormatMemory(c.Memory),
				resource.FormatMemory(c.Stored), c.Algorithm)
		}
	}
	if z := s.Zswap; z != nil && z.Enabled {
		text := fmt.Sprintf("zswap (%s) keeps pages compressed in memory before they go there", z.Compressor)
		if z.Stored != nil && z.Memory != nil {
			text += fmt.Sprintf(": %s for %s now", resource.FormatMemory(*z.Memory), resource.FormatMemory(*z.Stored))
		}
		fmt.Fprintln(w, terminal.Fold(text, terminal.Width, ""))
	}
	if s.LastDay == nil {
		return nil
	}
	text := "Swapping wrote " + resource.FormatMemory(*s.LastDay) + " to disks in the last day"
	if s.Budget > 0 {
		text += ", of " + resource.FormatMemory(s.Budget) + " that it may"
	}
	_, err := fmt.Fprintln(w, text+".")
	return err
}

func printSwapDevices(w io.Writer, devices []swap.Device) error {
	t := terminal.NewTable("DEVICE", "KIND", ">SIZE", ">USED", ">PRIORITY", ">WRITTEN", "OURS")
	t.Shrinks = 0
	for i := range devices {
		d := &devices[i]
		used, priority, written, ours := "off", "-", "-", "no"
		if d.On {
			used, priority = resource.FormatMemory(d.Used), fmt.Sprint(d.Priority)
		}
		if d.Written != nil {
			written = resource.FormatMemory(*d.Written)
		}
		if d.Ours {
			ours = "yes"
		}
		t.Add(d.Path, string(d.Kind), roundedUp(d.Size), used, priority, written, ours)
	}
	return t.Write(w)
}

// roundedUp prints a size with the page of its header, which is the requested size.
func roundedUp(size resource.Amount) string {
	return resource.FormatMemory((size + resource.MiB - 1) / resource.MiB * resource.MiB)
}

// swapCreateOptions are the flags of swap create.
type swapCreateOptions struct {
	place     place.Place
	size      resource.Amount
	file      string
	zram      bool
	zswap     bool
	algorithm string
}

func swapCreateCommand() *cobra.Command {
	var o swapCreateOptions
	cmd := &cobra.Command{
		Use:   "create --size SIZE | --zswap",
		Short: "Create a swap file or zram device, or enable zswap",
		Long: `Create a swap file, which the kernel uses after all other swap; or, with --zram,
a device that compresses pages in memory, which it uses before all disks. It
needs root.

The file takes its whole size on the disk at once; a twentieth of the disk, and
at least 1 GiB, must stay free. It outlives the daemon; a restart of the machine
turns it off and removes zram. "bellows swap remove" removes both. Pages in zram
take about half their size of memory: leave that with "bellows up --memory".

--zswap creates no device: the kernel then keeps pages that compress in memory,
on their way to a swap file or partition. It is a setting of the whole machine.`,
		Example: `  bellows swap create --size 4GiB
  bellows swap create --size 32GiB --file /mnt/fast/swapfile
  bellows swap create --size 2GiB --zram --algorithm zstd
  bellows swap create --zswap`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.Var(flags.Memory(&o.size), "size", "size of the swap file or zram device")
	f.StringVar(&o.file, "file", "", "`path` of the swap file; default: swapfile in the state directory")
	f.BoolVar(&o.zram, "zram", false, "create a zram device instead of a file")
	f.BoolVar(&o.zswap, "zswap", false, "enable zswap, and create no device")
	f.StringVar(&o.algorithm, "algorithm", "",
		"`name` of the compression algorithm of zram or zswap; default: the kernel's")
	o.place.StateFlag(cmd)
	return cmd
}

func (o *swapCreateOptions) run(cmd *cobra.Command) error {
	switch {
	case o.zswap && (o.zram || o.size != 0 || o.file != ""):
		return command.Usagef(
			"zswap: cannot be combined with --size, --file or --zram: it compresses pages on their way to existing swap")
	case o.size == 0 && !o.zswap:
		return command.Usagef("size: must be given, as in `bellows swap create --size 4GiB`")
	case o.zram && o.file != "":
		return command.Usagef("file %s: cannot be combined with --zram", o.file)
	case !o.zram && !o.zswap && o.algorithm != "":
		return command.Usagef("algorithm %s: needs --zram or --zswap", o.algorithm)
	}
	if err := o.place.Fill(); err != nil {
		return err
	}
	ledger := swap.NewLedger(swap.Machine{}, o.place.State)
	if o.zswap {
		if err := ledger.TurnOnZswap(o.algorithm); err != nil {
			return swapError(err)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "zswap is on")
		return err
	}
	var d swap.Device
	var err error
	if o.zram {
		d, err = ledger.CreateZram(o.size, o.algorithm)
	} else {
		d, err = ledger.CreateFile(o.file, o.size)
	}
	if err != nil {
		return swapError(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "swapping to %s, %s\n", d.Path, resource.FormatMemory(o.size))
	return err
}

// swapError marks a refused request as a wrong usage.
func swapError(err error) error {
	if errors.Is(err, swap.ErrRefused) {
		return command.Usage(err)
	}
	return err
}

// swapRemoveOptions are the flags of swap remove.
type swapRemoveOptions struct {
	place      place.Place
	all, force bool
}

func swapRemoveCommand() *cobra.Command {
	var o swapRemoveOptions
	cmd := &cobra.Command{
		Use:   "remove [DEVICE|zswap...]",
		Short: "Remove a swap device that bellows created; its pages are read back",
		Long: `Remove a swap device that "bellows swap create" created. Its pages are read back
into memory first, which takes as long as reading them. Other swap devices are
never touched. It is refused if the pages do not fit into available memory, or
if jobs have pages in swap: a container whose pages come back and exceed its
limit is killed by the kernel. --force removes the device anyway. The name
zswap turns off zswap that "bellows swap create --zswap" turned on.`,
		Example: `  bellows swap remove
  bellows swap remove /dev/zram0
  bellows swap remove --all`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false,
		"remove all devices that bellows created; default: the only device, if none is named")
	cmd.Flags().BoolVar(&o.force, "force", false, "remove the device even while jobs use swap")
	o.place.Flags(cmd, true)
	return cmd
}

func (o *swapRemoveOptions) run(cmd *cobra.Command, args []string) error {
	if o.all && len(args) > 0 {
		return command.Usagef("device %s: cannot be combined with --all", args[0])
	}
	if err := o.place.Fill(); err != nil {
		return err
	}
	ledger := swap.NewLedger(swap.Machine{}, o.place.State)
	devices, err := o.which(ledger, args)
	if err != nil {
		return err
	}
	if !slices.Equal(devices, []string{zswapName}) {
		if err := o.checkJobs(cmd); err != nil {
			return err
		}
	}
	for _, path := range devices {
		if path == zswapName {
			if err := ledger.TurnOffZswap(); err != nil {
				return swapError(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "zswap is off")
			continue
		}
		shown := showRest(cmd.ErrOrStderr(), path)
		err := ledger.Remove(cmd.Context(), path)
		shown()
		if err != nil {
			return swapError(err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", path)
	}
	return nil
}

// showRest shows how many bytes are left in a device that is being removed, until the returned function is called.
func showRest(to io.Writer, path string) (stop func()) {
	line := terminal.NewProgress(to, "left in "+path)
	var shown sync.WaitGroup
	ended := make(chan struct{})
	shown.Go(func() {
		defer line.Clear()
		for next := terminal.Patience; ; next = terminal.Pace {
			select {
			case <-ended:
				return
			case <-time.After(next):
			}
			devices, _ := swap.Machine{}.Devices()
			for i := range devices {
				if devices[i].Path == path {
					line.Show(resource.FormatMemory(devices[i].Used))
				}
			}
		}
	})
	return func() { close(ended); shown.Wait() }
}

// zswapName is the name of zswap in lists of devices.
const zswapName = "zswap"

// which returns the devices to remove.
func (o *swapRemoveOptions) which(ledger *swap.Ledger, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	all, err := ledger.Devices()
	if err != nil {
		return nil, err
	}
	var ours []string
	for i := range all {
		if all[i].Ours {
			ours = append(ours, all[i].Path)
		}
	}
	if z, err := ledger.Zswap(); err != nil {
		return nil, err
	} else if z != nil && z.Ours {
		ours = append([]string{zswapName}, ours...) // before the swap devices behind it
	}
	switch {
	case len(ours) > 1 && !o.all:
		return nil, command.Usagef("device: must be one of %s, or --all", strings.Join(ours, ", "))
	case len(ours) == 0 && !o.all:
		return nil, command.Usagef("device: none was created by `bellows swap create` with state directory %s",
			filepath.Clean(o.place.State))
	}
	return ours, nil
}

// checkJobs returns an error if jobs have pages in swap. If the removal is forced, it says what becomes of them.
func (o *swapRemoveOptions) checkJobs(cmd *cobra.Command) error {
	client, err := o.place.Client()
	if err != nil {
		return o.unlessForced(err)
	}
	tasks, err := client.Tasks(cmd.Context(), true)
	if api.KindOf(err) == api.Unavailable {
		return nil
	}
	if err != nil {
		return o.unlessForced(err)
	}
	for i := range tasks {
		t := &tasks[i]
		if u := t.Usage; t.State == api.TaskEnded || u == nil || u.Swap == nil || *u.Swap < int64(resource.MiB) {
			continue
		}
		holds := fmt.Sprintf("task %s of a job holds %s in swap", t.Task,
			resource.FormatMemory(resource.Amount(*t.Usage.Swap)))
		if !o.force {
			return fmt.Errorf("%s: wait until it has ended, or give --force", holds)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows: %s: it ends if that does not fit its limit\n", holds)
	}
	return nil
}

func (o *swapRemoveOptions) unlessForced(err error) error {
	if o.force {
		return nil
	}
	return err
}
