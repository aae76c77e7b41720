package lab

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/ethtool"
	"headgate.dev/headgate/unit"
)

// netemOptions are what the kernel's netem does to the frames that a device
// sends. All of it is of single segments: super-packets are cut first, because
// netem would lose, delay or queue each as one.
type netemOptions struct {
	// Delay is how long each frame is held, before Rate: the queue before the rate is
	// at the far end of the path, and what is lost takes no time there. With a delay
	// that does not vary all else is as if it were at the near end.
	Delay time.Duration
	// Jitter is added to or taken from Delay, drawn anew, evenly, for each frame. It
	// is at most Delay. A frame that would overtake the one before it leaves with it
	// instead, unless Reorder is set.
	Jitter  time.Duration
	Reorder bool
	// Rate serialises frames, in layer-2 bits per second; 0 does not.
	Rate unit.Rate
	// Queue is how many segments may wait for Rate, with the one that is being sent;
	// 0 is netemMost. What comes to a full queue is dropped.
	Queue uint32
	// Loss is the probability of each segment to be lost; Bursts, if set, is a model
	// with a memory, instead.
	Loss   float64
	Bursts *gilbertElliott
	// ECN marks packets that can be marked where they would have been lost. A full
	// queue drops all the same: netem knows no marking by queue length.
	ECN bool
	// Seed, if not 0, makes losses and jitter the same again. The kernel does so
	// from 6.6, and passes over it before.
	Seed uint64
}

// gilbertElliott is a link with a good and a bad state. For each segment the link
// changes its state with the probability of the state it is in, and loses the
// segment with the one of the state it was in. The mean loss is LossBad * b +
// LossGood * (1-b), where b is ToBad / (ToBad + ToGood); with a LossBad of 1 bursts
// are 1 / ToGood segments long.
//
// (E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels",
// Bell System Technical Journal 42, 1963; Gilbert's is the one with LossGood 0.)
type gilbertElliott struct {
	ToBad, ToGood     float64
	LossBad, LossGood float64
}

// Constants of netem, ours.
const (
	// netemMost bounds what netem holds: 10 s, the longest delay, of 1.2 Gbit/s of
	// full frames, in 2.4 GB of memory.
	netemMost = 1 << 20
	// netemMostJitter: the kernel draws twice the jitter, in ns, from 32 bits.
	netemMostJitter = 2 * time.Second
	// inOrder is a rate that costs a frame 13 ns. Netem keeps frames in order where
	// it has a rate, because it starts from the time of the last one, and sorts them
	// by time where it has none.
	inOrder = 1 * unit.Tbit
)

// The qdiscs of a device with netem, each the child of the one before:
//
//	1: TBF, which cuts super-packets (see cutBurst)
//	2: netem with the delay, jitter and loss
//	3: netem with the rate and its queue
//
// One netem could do both, but its limit would count what is delayed as well, and a
// rate would rule out reordering. The rate comes last for the same reason: in some
// kernels the limit of a netem counts what its child holds too (Debian's 6.1: of 2
// Mbit/s with a queue of 30 and 300 ms behind it 1.2 were left). A child that is a
// FIFO does not bring order back, as it did in Linux 3.0: a netem now hands frames
// to it when their delay is over.
var (
	netemCut  = netlink.MakeHandle(1, 0)
	netemPath = netlink.MakeHandle(2, 0)
	netemRate = netlink.MakeHandle(3, 0)
)

// addNetem gives link, which must have no qdisc of its own, the qdiscs for o. The
// calling thread must be in link's namespace.
func addNetem(link netlink.Link, o netemOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := addLeaf(link, netlink.HANDLE_ROOT, netemCut, wholeBurst, cutBurst); err != nil {
		return fmt.Errorf("add TBF: %w", err)
	}
	return o.set(link, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// changeNetem makes of what addNetem made what o asks. Frames that are held
// already keep the times that they have.
func changeNetem(link netlink.Link, o netemOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	return o.set(link, 0)
}

// check finds what netem would take, but not do.
func (o netemOptions) check() error {
	chances := map[string]float64{"loss": o.Loss}
	if g := o.Bursts; g != nil {
		chances["change to the bad state"], chances["change to the good state"] = g.ToBad, g.ToGood
		chances["loss in the bad state"], chances["loss in the good state"] = g.LossBad, g.LossGood
	}
	for what, p := range chances {
		if !(p >= 0 && p <= 1) { // so that NaN is refused
			return configErrorf("a probability of %s of %v is not between 0 and 1", what, p)
		}
	}
	switch {
	case o.Delay < 0 || o.Delay > maxDelay:
		return configErrorf("a delay of %v is not between 0 and %v", o.Delay, maxDelay)
	case o.Jitter < 0 || o.Jitter > o.Delay:
		return configErrorf("a jitter of %v is not between 0 and the delay, %v: a frame cannot leave before it came", o.Jitter, o.Delay)
	case o.Jitter > netemMostJitter:
		return configErrorf("a jitter of %v is more than the %v that netem can draw", o.Jitter, netemMostJitter)
	case o.Reorder && o.Jitter == 0:
		return configErrorf("frames change their order by jitter, and there is none: give a jitter, or leave out the reordering")
	case o.Loss > 0 && o.Bursts != nil:
		return configErrorf("a loss of %v and a model of bursts are both given: choose one", o.Loss)
	case o.ECN && o.Loss == 0 && o.Bursts == nil:
		return configErrorf("netem marks what it would lose, and there is no loss: give one, or leave out ECN")
	}
	return nil
}

// set makes, or with no flags changes, both netem.
func (o netemOptions) set(link netlink.Link, flags int) error {
	for _, q := range []struct {
		parent, handle uint32
		options        *nl.RtAttr
	}{
		{netemCut | 1, netemPath, o.pathStage()},
		{netemPath | 1, netemRate, o.rateStage()},
	} {
		if err := requestNetem(link.Attrs().Index, q.parent, q.handle, flags, q.options); err != nil {
			return err
		}
	}
	return nil
}

func (o netemOptions) pathStage() *nl.RtAttr {
	m := netemMessage{limit: netemMost, delay: o.Delay, jitter: o.Jitter, loss: o.Loss, bursts: o.Bursts, ecn: o.ECN, seed: o.Seed}
	if o.Jitter > 0 && !o.Reorder {
		m.rate = inOrder
	}
	return m.attr()
}

func (o netemOptions) rateStage() *nl.RtAttr {
	queue := o.Queue
	if queue == 0 {
		queue = netemMost
	}
	return netemMessage{limit: queue, rate: o.Rate}.attr()
}

// Attributes of netem that package netlink does not have (uapi/linux/pkt_sched.h).
const (
	netemLatency64 = 10
	netemJitter64  = 11
	netemSeed      = 14
	netemLossGE    = 2 // within TCA_NETEM_LOSS
)

// netemMessage is what one netem is told. Package netlink's Netem has no model of
// bursts, no ECN and no seed, counts time in ticks of 64 ns, and sends a rate only
// if there is one, so that none could be taken away.
type netemMessage struct {
	limit         uint32
	rate          unit.Rate
	delay, jitter time.Duration
	loss          float64
	bursts        *gilbertElliott
	ecn           bool
	seed          uint64
}

// attr is TCA_OPTIONS. The kernel leaves as it was what a change does not name, but
// for the model of losses.
func (m netemMessage) attr() *nl.RtAttr {
	bytes := m.rate.BytesPerSecond()
	a := nl.NewRtAttr(nl.TCA_OPTIONS, (&nl.TcNetemQopt{Limit: m.limit, Loss: chance(m.loss)}).Serialize())
	a.AddRtAttr(netemLatency64, nl.Uint64Attr(uint64(m.delay)))
	a.AddRtAttr(netemJitter64, nl.Uint64Attr(uint64(m.jitter)))
	// The kernel takes the greater of the two.
	a.AddRtAttr(nl.TCA_NETEM_RATE, (&nl.TcNetemRate{Rate: uint32(min(bytes, math.MaxUint32))}).Serialize())
	a.AddRtAttr(nl.TCA_NETEM_RATE64, nl.Uint64Attr(bytes))
	ecn := uint32(0)
	if m.ecn {
		ecn = 1
	}
	a.AddRtAttr(nl.TCA_NETEM_ECN, nl.Uint32Attr(ecn))
	if g := m.bursts; g != nil {
		// struct tc_netem_gemodel: p, r, h, k1, of which h is not to lose.
		var model []byte
		for _, p := range []float64{g.ToBad, g.ToGood, 1 - g.LossBad, g.LossGood} {
			model = append(model, nl.Uint32Attr(chance(p))...)
		}
		a.AddRtAttr(nl.TCA_NETEM_LOSS|unix.NLA_F_NESTED, nil).AddRtAttr(netemLossGE, model)
	}
	if m.seed != 0 {
		a.AddRtAttr(netemSeed, nl.Uint64Attr(m.seed))
	}
	return a
}

// chance is a probability as the kernel has it: of 2^32-1.
func chance(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

// requestNetem makes or changes one netem, in the calling thread's namespace.
func requestNetem(ifindex int, parent, handle uint32, flags int, options *nl.RtAttr) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, flags|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(ifindex), Parent: parent, Handle: handle})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")))
	req.AddData(options)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	switch {
	case errors.Is(err, unix.ENOENT) && flags&unix.NLM_F_CREATE != 0:
		return errors.New("add netem: this kernel has none (CONFIG_NET_SCH_NETEM)")
	case err != nil && flags&unix.NLM_F_CREATE != 0:
		return fmt.Errorf("add netem: %w", err)
	case err != nil:
		return fmt.Errorf("change netem: %w", err)
	}
	return nil
}

// receiveInOrder is for a veth that gets what netem sends, and for each that follows
// on the way, in the calling thread's namespace. A veth else hands a frame to the
// processor that happens to send it, of netem's timer or of whoever sends the next:
// with jitter up to 9 of 1,000 frames overtook another. With GRO it has one queue.
func receiveInOrder(dev string) error {
	if err := ethtool.Set(dev, unix.ETHTOOL_SGRO, 1); err != nil {
		return fmt.Errorf("turn GRO on: %w", err)
	}
	return nil
}

// netemCounts are those of a direction since addNetem, in segments.
type netemCounts struct {
	// Frames and Bytes have left.
	Frames uint64
	Bytes  uint64
	// Lost were lost, or with ECN marked: netem counts both as one.
	Lost uint64
	// Full came to a full queue, and were dropped.
	Full uint64
}

// countNetem reads the counts of link, by h.
func countNetem(h *netlink.Handle, link netlink.Link) (c netemCounts, err error) {
	qdiscs, err := h.QdiscList(link)
	if err != nil {
		return c, fmt.Errorf("list the qdiscs of %s: %w", link.Attrs().Name, err)
	}
	found := map[uint32]*netlink.QdiscStatistics{}
	for _, q := range qdiscs {
		if s := q.Attrs().Statistics; s != nil && s.Basic != nil && s.Queue != nil && q.Type() == "netem" {
			found[q.Attrs().Handle] = s
		}
	}
	path, rate := found[netemPath], found[netemRate]
	if path == nil || rate == nil {
		return c, fmt.Errorf("%s has no netem of ours", link.Attrs().Name)
	}
	c.Frames, c.Bytes, c.Full = uint64(rate.Basic.Packets), rate.Basic.Bytes, uint64(rate.Queue.Drops)
	// The parent counts what its child drops.
	c.Lost = uint64(path.Queue.Drops) - min(c.Full, uint64(path.Queue.Drops))
	return c, nil
}

// loopback is lo's index in every network namespace (drivers/net/loopback.c).
const loopback = 1

// kernelHasNetem tells whether the kernel has netem, or a module of it to load. It
// asks once, when a lab first needs to know, for one on the loopback device that
// cannot be made, because it has no options: a kernel without says ENOENT before it
// looks at what was asked, and one with it EINVAL (net/sched/sch_api.c,
// qdisc_create; sch_netem.c, netem_init). Nothing changes.
var kernelHasNetem = sync.OnceValue(func() bool {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: loopback, Parent: netlink.HANDLE_ROOT})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return errors.Is(err, unix.EINVAL)
})
