package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages and attributes that make a forwarding chain (uapi/linux/netfilter/
// nfnetlink.h, nf_tables.h).
const (
	nfBatchBegin = 0x10
	nfBatchEnd   = 0x11

	nftTableName   = 1
	nftChainPolicy = 5
	nftChainUse    = 6
	nftChainType   = 7

	nftRuleTable       = 1
	nftRuleChain       = 2
	nftRuleExpressions = 4
	nftListElement     = 1
	nftExpressionName  = 1
	nftExpressionData  = 2
	nftDataValue       = 1

	nftMetaRegister = 1
	nftMetaKey      = 2
	nftMetaSource   = 3
	nftMetaPriority = 2 // NFT_META_PRIORITY
	nftRegister1    = 1

	nfAccept = 1
)

// LastPriority is the priority of a chain that runs after all others of its hook.
const LastPriority = math.MaxInt32

// Forward is a chain of nf_tables that runs last at a device's ingress. Its only rule forwards
// packets whose priority (struct sk_buff) is a class of the qdisc Major to the device To. The rule
// is what "fwd to" in nft does, and an IFB handles it like the redirect of a filter
// (net/netfilter/nft_fwd_netdev.c, nft_fwd_netdev_eval). Other packets are not affected.
type Forward struct {
	Table, Chain string
	Dev          string
	Major        uint16
	To           int
}

// SetForward replaces the content of the chain's table by the chain, in one transaction.
func SetForward(f Forward) error {
	var b netfilterBatch
	b.newTable(f.Table)
	b.deleteTable(f.Table)
	b.newTable(f.Table)
	b.add(unix.NFT_MSG_NEWCHAIN, netlink.Create, func(ae *netlink.AttributeEncoder) {
		ae.String(nftChainTable, f.Table)
		ae.String(nftChainName, f.Chain)
		nested(ae, nftChainHook, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(nftHookNum, netdevIngress)
			ae.Uint32(nftHookPriority, LastPriority)
			ae.String(nftHookDevice, f.Dev)
		})
		ae.Uint32(nftChainPolicy, nfAccept)
		ae.String(nftChainType, "filter")
	})
	b.add(unix.NFT_MSG_NEWRULE, netlink.Create|netlink.Append, func(ae *netlink.AttributeEncoder) {
		ae.String(nftRuleTable, f.Table)
		ae.String(nftRuleChain, f.Chain)
		nested(ae, nftRuleExpressions, f.rule)
	})
	if err := b.execute(); err != nil {
		return fmt.Errorf("cannot create the nftables chain netdev %s %s, which forwards to an IFB (kernel options CONFIG_NF_TABLES_NETDEV, CONFIG_NFT_FWD_NETDEV): %w", f.Table, f.Chain, err)
	}
	return nil
}

// rule is "meta priority and 0xffff0000 == MAJOR meta priority set 0 fwd to TO". The priority is
// reset because no other qdisc uses the class, and because the packet continues to bridges, VLANs
// and other queues when the IFB returns it.
func (f Forward) rule(ae *netlink.AttributeEncoder) {
	const source, destination = 1, 2 // of bitwise
	expression(ae, "meta", func(ae *netlink.AttributeEncoder) {
		ae.Uint32(nftMetaRegister, nftRegister1)
		ae.Uint32(nftMetaKey, nftMetaPriority)
	})
	expression(ae, "bitwise", func(ae *netlink.AttributeEncoder) {
		const length, mask, xor = 3, 4, 5
		ae.Uint32(source, nftRegister1)
		ae.Uint32(destination, nftRegister1)
		ae.Uint32(length, 4)
		value(ae, mask, 0xFFFF0000)
		value(ae, xor, 0)
	})
	expression(ae, "cmp", func(ae *netlink.AttributeEncoder) {
		const operation, data, equal = 2, 3, 0
		ae.Uint32(source, nftRegister1)
		ae.Uint32(operation, equal)
		value(ae, data, uint32(f.Major)<<16)
	})
	immediate(ae, 0)
	expression(ae, "meta", func(ae *netlink.AttributeEncoder) {
		ae.Uint32(nftMetaKey, nftMetaPriority)
		ae.Uint32(nftMetaSource, nftRegister1)
	})
	immediate(ae, uint32(f.To))
	expression(ae, "fwd", func(ae *netlink.AttributeEncoder) { ae.Uint32(source, nftRegister1) })
}

// immediate loads a number into the register.
func immediate(ae *netlink.AttributeEncoder, v uint32) {
	expression(ae, "immediate", func(ae *netlink.AttributeEncoder) {
		const register, data = 1, 2
		ae.Uint32(register, nftRegister1)
		value(ae, data, v)
	})
}

func expression(ae *netlink.AttributeEncoder, name string, data func(*netlink.AttributeEncoder)) {
	nested(ae, nftListElement, func(ae *netlink.AttributeEncoder) {
		ae.String(nftExpressionName, name)
		nested(ae, nftExpressionData, data)
	})
}

// value encodes a register value, in the machine's byte order.
func value(ae *netlink.AttributeEncoder, typ uint16, v uint32) {
	nested(ae, typ, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(nftDataValue, binary.NativeEndian.AppendUint32(nil, v))
	})
}

func nested(ae *netlink.AttributeEncoder, typ uint16, fill func(*netlink.AttributeEncoder)) {
	ae.Nested(typ, func(ae *netlink.AttributeEncoder) error {
		ae.ByteOrder = binary.BigEndian
		fill(ae)
		return nil
	})
}

// DeleteForward removes a chain's table with its content. A missing table is not an error.
func DeleteForward(table string) error {
	var b netfilterBatch
	b.deleteTable(table)
	if err := b.execute(); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("cannot remove the nftables table netdev %s: %w", table, err)
	}
	return nil
}

// netfilterBatch is a transaction of nf_tables: it is applied completely or not at all.
type netfilterBatch struct{ msgs []netlink.Message }

func (b *netfilterBatch) newTable(name string) {
	b.add(unix.NFT_MSG_NEWTABLE, netlink.Create, func(ae *netlink.AttributeEncoder) { ae.String(nftTableName, name) })
}

func (b *netfilterBatch) deleteTable(name string) {
	b.add(unix.NFT_MSG_DELTABLE, 0, func(ae *netlink.AttributeEncoder) { ae.String(nftTableName, name) })
}

func (b *netfilterBatch) add(message uint16, flags netlink.HeaderFlags, fill func(*netlink.AttributeEncoder)) {
	ae := netlink.NewAttributeEncoder()
	ae.ByteOrder = binary.BigEndian
	fill(ae)
	attrs, err := ae.Encode()
	if err != nil {
		panic(fmt.Sprintf("nl: a message to nf_tables: %v", err)) // only a value that is too long for an attribute causes an error
	}
	b.append(unix.NFNL_SUBSYS_NFTABLES<<8|message, flags, append([]byte{unix.NFPROTO_NETDEV, unix.NFNETLINK_V0, 0, 0}, attrs...))
}

func (b *netfilterBatch) append(typ uint16, flags netlink.HeaderFlags, data []byte) {
	b.msgs = append(b.msgs, netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | flags}, Data: data})
}

// execute sends the transaction and returns the first error.
func (b *netfilterBatch) execute() error {
	c, err := OpenNetfilter()
	if err != nil {
		return err
	}
	defer c.Close()
	edge := []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES} // the subsystem in network order
	b.msgs[len(b.msgs)-1].Header.Flags |= netlink.Acknowledge
	b.msgs = append([]netlink.Message{{Header: netlink.Header{Type: nfBatchBegin, Flags: netlink.Request}, Data: edge}}, b.msgs...)
	b.append(nfBatchEnd, 0, edge)
	sent, err := c.c.SendMessages(b.msgs)
	if err != nil {
		return fmt.Errorf("cannot send %d requests to nf_tables: %w", len(b.msgs), err)
	}
	first, last := sent[0].Header.Sequence, sent[len(sent)-2].Header.Sequence
	var failed error
	for {
		replies, err := c.receive()
		if err != nil {
			return err
		}
		for _, r := range replies {
			if r.kind != unix.NLMSG_ERROR || r.sequence < first || r.sequence > last {
				continue
			}
			errno, ext := r.ack()
			if errno != 0 && failed == nil {
				failed = errno
				if ext != "" {
					failed = fmt.Errorf("%w (%s)", errno, ext)
				}
			}
			// An error of the whole transaction is reported for the first message only
			// (net/netfilter/nfnetlink.c, nfnetlink_rcv_batch).
			if r.sequence == last || r.sequence == first && errno != 0 {
				return failed
			}
		}
	}
}
