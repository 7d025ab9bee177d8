package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/server"
	"github.com/bellows-rm/bellows/store"
	"github.com/bellows-rm/bellows/swap"
)

// Config is what a Daemon is made of.
type Config struct {
	// State is the state directory, an absolute path.
	State string
	// Socket is the path of the socket on which the API is served; empty is nowhere.
	Socket string
	// Agent says what of the machine is managed, and how. Open fills in Dir and Log.
	Agent agent.Config
	// Driver says who decides. Open fills in Backend, Store, Dir, UID and Log, and HasSwap unless it is set.
	Driver live.Config
	// MeasureDisk says that the bandwidth of the disk below State is measured, once, and is a part of the capacity. A disk that
	// cannot be measured has no limit.
	MeasureDisk bool
	// Version is what the API says of this program.
	Version string
	Log     *slog.Logger // nil is slog.Default
}

// Daemon manages this machine from Open to Close, Remove or the end of Serve. Its parts serve callers in the same process.
type Daemon struct {
	Agent  *agent.Agent
	Driver *live.Driver
	Store  *store.Store

	config Config
	log    *slog.Logger
	lock   *store.Lock
	server *server.Server // nil without a socket
	served chan error     // gets the error with which the server ended
}

// Open brings the parts up, each on those before it. Containers of an earlier daemon are found again. The errors are those of the
// parts: the state directory is locked, the socket is answered, or an agent.NoCgroupError.
func Open(c Config) (*Daemon, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	d := &Daemon{config: c, log: c.Log, served: make(chan error, 1)}
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) open() (err error) {
	// 1. Nobody else has the state.
	if d.lock, err = store.TakeLock(d.config.State); err != nil {
		return err
	}
	if d.Store, err = store.Open(d.config.State); err != nil {
		return err
	}
	if d.config.MeasureDisk {
		d.findDisk()
	}
	// 2. Nobody else answers on the socket. Before the agent, which takes control groups that nobody uses for left behind.
	var listener net.Listener
	if d.config.Socket != "" {
		if listener, err = server.Listen(d.config.Socket); err != nil {
			return err
		}
	}
	// 3. The machine, and who decides about it. Until the API is served whoever connects waits.
	if err := d.manage(); err != nil {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
		return err
	}
	// 4. Everybody may ask.
	if listener != nil {
		about := server.Daemon{Version: d.config.Version, PID: os.Getpid(), UID: uint32(os.Geteuid()), State: d.config.State, Settings: d.config.Driver.Settings}
		s := server.New(d.Driver, d.Store, about, d.log)
		d.server = s
		go func() { d.served <- s.Serve(listener) }()
	}
	return nil
}

// manage opens the agent and starts the driver on it.
func (d *Daemon) manage() (err error) {
	a := d.config.Agent
	a.Dir, a.Log = d.config.State, d.log
	if d.Agent, err = agent.Open(a); err != nil {
		return err
	}
	if text := d.Agent.Crowded(); text != "" {
		d.log.Warn(text)
	}
	c := d.config.Driver
	c.Backend, c.Store, c.Dir, c.Log, c.UID = d.Agent, d.Store, d.config.State, d.log, uint32(os.Geteuid())
	if c.HasSwap == nil {
		c.HasSwap = swap.Machine{}.HasSwap
	}
	d.Driver, err = live.Start(c)
	return err
}

// findDisk makes the bandwidth of the disk a part of the capacity.
func (d *Daemon) findDisk() {
	var err error
	if d.config.Agent.Capacity[resource.Disk], err = speedOfDisk(d.config.State, profiler.MeasureDisk); err != nil {
		d.log.Info("the speed of the disk is not known", "error", err)
	}
}

// Capacity is what of the machine is managed.
func (d *Daemon) Capacity() resource.Vector { return d.config.Agent.Capacity }

// Serve works until the daemon is ended: for good by a request to the API, with the control groups removed, or for now by ctx, with
// every container left as it is. An engine that hangs ends it, too, with an error and without tidying up, for which the engine would
// be needed.
func (d *Daemon) Serve(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
	case <-d.Driver.Done():
		// What is left of control groups hinders nobody: the next daemon finds them.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := d.Remove(ctx); err != nil {
			d.log.Warn("not everything could be taken away", "error", err)
		}
		return nil
	case err = <-d.served:
	case <-d.Driver.Dead():
		return errors.New("the engine hung and did not come back; what runs goes on: start bellows up again, which sets the job aside that it hung on")
	}
	return errors.Join(err, d.Close())
}

// Remove ends the daemon for good: it takes the control groups away, too. Containers that run make that an error; see
// live.Driver.Shutdown.
func (d *Daemon) Remove(ctx context.Context) error {
	err := d.letGo()
	if d.Agent != nil {
		err = errors.Join(err, d.Agent.Remove(ctx))
		d.Agent = nil
	}
	return errors.Join(err, d.Close())
}

// Close takes down what is up and leaves every container as it is.
func (d *Daemon) Close() error {
	err := d.letGo()
	if d.Agent != nil {
		d.Agent.Close()
		d.Agent = nil
	}
	if d.Store != nil {
		err = errors.Join(err, d.Store.Close())
		d.Store = nil
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Release())
		d.lock = nil
	}
	return err
}

// letGo ends the API, where requests under way may end and those that would wait for long are cut off, and then the driver.
func (d *Daemon) letGo() error {
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.server.Shutdown(ctx)
		d.server = nil
	}
	if d.Driver == nil {
		return nil
	}
	err := d.Driver.Close()
	d.Driver = nil
	if err != nil {
		return fmt.Errorf("end the driver: %w", err)
	}
	return nil
}
