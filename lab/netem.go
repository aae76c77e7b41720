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

// netemOptions are the effects of the kernel's netem on the frames that a device sends. They apply to
// single segments: super-packets are segmented first, because netem would lose, delay or queue each as
// one.
type netemOptions struct {
	// Delay is how long each frame is held before Rate. The queue of the rate is therefore at the far
	// end of the path, and lost frames take no time there. With a constant delay everything else is
	// the same as at the near end.
	Delay time.Duration
	// Jitter is a uniform random variation of Delay for each frame, at most Delay. A frame that would
	// overtake the one before it leaves with it instead, unless Reorder is set.
	Jitter  time.Duration
	Reorder bool
	// Rate serialises frames, in layer-2 bits per second; 0 is unlimited.
	Rate unit.Rate
	// Queue is the maximum number of segments that wait for Rate, including the one that is being
	// sent; 0 is netemMaxPackets. Arrivals at a full queue are dropped.
	Queue uint32
	// Loss is the loss probability of each segment; Bursts, if set, is a model of correlated loss,
	// instead.
	Loss   float64
	Bursts *gilbertElliott
	// ECN marks ECN-capable packets instead of losing them. A full queue still drops: netem does not
	// mark by queue length.
	ECN bool
	// Seed, if not 0, makes losses and jitter reproducible. The kernel supports this from 6.6 on, and
	// ignores it before.
	Seed uint64
}

// gilbertElliott is a link with a good and a bad state. For each segment the link changes its state
// with the state's transition probability, and loses the segment with the loss probability of the
// state before the change. The mean loss is LossBad * b + LossGood * (1-b), where b is ToBad / (ToBad
// + ToGood); with a LossBad of 1 bursts are 1 / ToGood segments long.
//
// (E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", Bell System Technical
// Journal 42, 1963; Gilbert's model has LossGood 0.)
type gilbertElliott struct {
	ToBad, ToGood     float64
	LossBad, LossGood float64
}

// Constants of netem, chosen by this project.
const (
	// netemMaxPackets limits the packets that netem holds: 10 s, the longest delay, of 1.2 Gbit/s of full
	// frames, in 2.4 GB of memory.
	netemMaxPackets = 1 << 20
	// netemMaxJitter: the kernel draws twice the jitter, in ns, from 32 bits.
	netemMaxJitter = 2 * time.Second
	// inOrder is a rate that takes 13 ns for a frame. Netem with a rate keeps frames in order, because
	// each starts at the time of the one before; without a rate it sorts them by time.
	inOrder = 1 * unit.Tbit
)

// The qdiscs of a device with netem, each the child of the one before:
//
//	1: TBF, which segments super-packets (see cutBurst)
//	2: netem with the delay, jitter and loss
//	3: netem with the rate and its queue
//
// One netem could do both, but its limit would also count delayed frames, and a rate would prevent
// reordering. The rate comes last for the same reason: in some kernels the limit of a netem also
// counts what its child holds (Debian's 6.1: of 2 Mbit/s with a queue of 30 and 300 ms behind it, 1.2
// remained). A FIFO as child does not restore the order, as it did in Linux 3.0: netem now passes
// frames to it when their delay is over.
var (
	netemCut  = netlink.MakeHandle(1, 0)
	netemPath = netlink.MakeHandle(2, 0)
	netemRate = netlink.MakeHandle(3, 0)
)

// addNetem gives link the qdiscs for o. The link must have no root qdisc. The calling thread must be
// in link's namespace.
func addNetem(link netlink.Link, o netemOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := addLeaf(link, netlink.HANDLE_ROOT, netemCut, wholeBurst, cutBurst); err != nil {
		return fmt.Errorf("add TBF: %w", err)
	}
	return o.set(link, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// changeNetem changes the qdiscs of addNetem to o. Frames that are already held keep their times.
func changeNetem(link netlink.Link, o netemOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	return o.set(link, 0)
}

// check rejects options that netem would accept, but not implement.
func (o netemOptions) check() error {
	chances := map[string]float64{"loss": o.Loss}
	if g := o.Bursts; g != nil {
		chances["change to the bad state"], chances["change to the good state"] = g.ToBad, g.ToGood
		chances["loss in the bad state"], chances["loss in the good state"] = g.LossBad, g.LossGood
	}
	for what, p := range chances {
		if !(p >= 0 && p <= 1) { // rejects NaN
			return configErrorf("a probability of %s of %v is not between 0 and 1", what, p)
		}
	}
	switch {
	case o.Delay < 0 || o.Delay > maxDelay:
		return configErrorf("a delay of %v is not between 0 and %v", o.Delay, maxDelay)
	case o.Jitter < 0 || o.Jitter > o.Delay:
		return configErrorf("a jitter of %v is not between 0 and the delay, %v: a frame cannot leave before it arrived", o.Jitter, o.Delay)
	case o.Jitter > netemMaxJitter:
		return configErrorf("a jitter of %v exceeds netem's maximum of %v", o.Jitter, netemMaxJitter)
	case o.Reorder && o.Jitter == 0:
		return configErrorf("reordering needs jitter: set a jitter, or leave the reordering out")
	case o.Loss > 0 && o.Bursts != nil:
		return configErrorf("a loss of %v and a model of bursts exclude each other: choose one", o.Loss)
	case o.ECN && o.Loss == 0 && o.Bursts == nil:
		return configErrorf("ECN needs a loss, because netem marks instead of losing: set a loss, or leave ECN out")
	}
	return nil
}

// set adds, or with no flags changes, both netems.
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
	m := netemMessage{limit: netemMaxPackets, delay: o.Delay, jitter: o.Jitter, loss: o.Loss, bursts: o.Bursts, ecn: o.ECN, seed: o.Seed}
	if o.Jitter > 0 && !o.Reorder {
		m.rate = inOrder
	}
	return m.attr()
}

func (o netemOptions) rateStage() *nl.RtAttr {
	queue := o.Queue
	if queue == 0 {
		queue = netemMaxPackets
	}
	return netemMessage{limit: queue, rate: o.Rate}.attr()
}

// Attributes of netem that package netlink lacks (uapi/linux/pkt_sched.h).
const (
	netemLatency64 = 10
	netemJitter64  = 11
	netemSeed      = 14
	netemLossGE    = 2 // within TCA_NETEM_LOSS
)

// netemMessage is the message for one netem. Package netlink's Netem has no burst model, no ECN and no
// seed, counts time in ticks of 64 ns, and sends a rate only if there is one, so that a rate could not
// be removed.
type netemMessage struct {
	limit         uint32
	rate          unit.Rate
	delay, jitter time.Duration
	loss          float64
	bursts        *gilbertElliott
	ecn           bool
	seed          uint64
}

// attr returns TCA_OPTIONS. The kernel leaves unchanged what a change does not name, except for the
// loss model.
func (m netemMessage) attr() *nl.RtAttr {
	bytes := m.rate.BytesPerSecond()
	a := nl.NewRtAttr(nl.TCA_OPTIONS, (&nl.TcNetemQopt{Limit: m.limit, Loss: chance(m.loss)}).Serialize())
	a.AddRtAttr(netemLatency64, nl.Uint64Attr(uint64(m.delay)))
	a.AddRtAttr(netemJitter64, nl.Uint64Attr(uint64(m.jitter)))
	// The kernel uses the greater of the two.
	a.AddRtAttr(nl.TCA_NETEM_RATE, (&nl.TcNetemRate{Rate: uint32(min(bytes, math.MaxUint32))}).Serialize())
	a.AddRtAttr(nl.TCA_NETEM_RATE64, nl.Uint64Attr(bytes))
	ecn := uint32(0)
	if m.ecn {
		ecn = 1
	}
	a.AddRtAttr(nl.TCA_NETEM_ECN, nl.Uint32Attr(ecn))
	if g := m.bursts; g != nil {
		// struct tc_netem_gemodel: p, r, h, k1, where h is the probability of no loss.
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

// chance returns a probability as the kernel represents it: as a fraction of 2^32-1.
func chance(p float64) uint32 { return uint32(math.Round(p * math.MaxUint32)) }

// requestNetem adds or changes one netem, in the calling thread's namespace.
func requestNetem(ifindex int, parent, handle uint32, flags int, options *nl.RtAttr) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, flags|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(ifindex), Parent: parent, Handle: handle})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")))
	req.AddData(options)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	switch {
	case errors.Is(err, unix.ENOENT) && flags&unix.NLM_F_CREATE != 0:
		return errors.New("cannot add netem: this kernel has none (CONFIG_NET_SCH_NETEM)")
	case err != nil && flags&unix.NLM_F_CREATE != 0:
		return fmt.Errorf("cannot add netem: %w", err)
	case err != nil:
		return fmt.Errorf("cannot change netem: %w", err)
	}
	return nil
}

// receiveInOrder is for a veth that receives from netem, and for each further one on the path, in the
// calling thread's namespace. A veth otherwise passes a frame to the processor that sends it, which is
// that of netem's timer or of the sender of the next frame: with jitter up to 9 of 1,000 frames were
// reordered. With GRO a veth has one queue.
func receiveInOrder(dev string) error {
	if err := ethtool.Set(dev, unix.ETHTOOL_SGRO, 1); err != nil {
		return fmt.Errorf("turn GRO on: %w", err)
	}
	return nil
}

// netemCounts are the counters of a direction since addNetem, in segments.
type netemCounts struct {
	// Frames and Bytes have left.
	Frames uint64
	Bytes  uint64
	// Lost were lost, or with ECN marked: netem counts both together.
	Lost uint64
	// Full arrived at a full queue, and were dropped.
	Full uint64
}

// countNetem reads the counters of link, by h.
func countNetem(h *netlink.Handle, link netlink.Link) (c netemCounts, err error) {
	qdiscs, err := h.QdiscList(link)
	if err != nil {
		return c, fmt.Errorf("cannot list the qdiscs of %s: %w", link.Attrs().Name, err)
	}
	found := map[uint32]*netlink.QdiscStatistics{}
	for _, q := range qdiscs {
		if s := q.Attrs().Statistics; s != nil && s.Basic != nil && s.Queue != nil && q.Type() == "netem" {
			found[q.Attrs().Handle] = s
		}
	}
	path, rate := found[netemPath], found[netemRate]
	if path == nil || rate == nil {
		return c, fmt.Errorf("device %s lost the netem qdisc of the lab", link.Attrs().Name)
	}
	c.Frames, c.Bytes, c.Full = uint64(rate.Basic.Packets), rate.Basic.Bytes, uint64(rate.Queue.Drops)
	// The parent counts the drops of its child.
	c.Lost = uint64(path.Queue.Drops) - min(c.Full, uint64(path.Queue.Drops))
	return c, nil
}

// loopback is lo's index in every network namespace (drivers/net/loopback.c).
const loopback = 1

// kernelHasNetem reports whether the kernel has netem, or a module of it. It checks once, when a lab
// first needs to know, by requesting an invalid netem without options on the loopback device. A kernel
// without netem returns ENOENT before it looks at the request, one with netem EINVAL
// (net/sched/sch_api.c, qdisc_create; sch_netem.c, netem_init). The request changes nothing.
var kernelHasNetem = sync.OnceValue(func() bool {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: loopback, Parent: netlink.HANDLE_ROOT})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("netem")))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return errors.Is(err, unix.EINVAL)
})
