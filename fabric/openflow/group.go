package openflow

// GroupID is the number of a group (enum ofp_group). Groups have the numbers 0 to GroupMax.
type GroupID uint32

// The largest number of a group, and groups in requests.
const (
	GroupMax GroupID = 0xffffff00
	GroupAll GroupID = 0xfffffffc // deletions and statistics: all groups
	GroupAny GroupID = 0xffffffff // statistics of flows: any group, or none
)

// GroupMod adds, changes or deletes a group (struct ofp_group_mod, section 7.3.4.2).
type GroupMod struct {
	Command GroupCommand
	Kind    GroupType
	Group   GroupID
	Buckets []Bucket
}

// GroupCommand is what is done with a group (enum ofp_group_mod_command).
type GroupCommand uint16

// What is done with a group.
const (
	GroupAdd GroupCommand = iota
	GroupModify
	GroupDelete
)

// GroupType is which buckets of a group process a packet (enum ofp_group_type, section 5.6.1).
type GroupType uint8

// Which buckets of a group process a packet.
const (
	GroupTypeAll      GroupType = iota // each
	GroupTypeSelect                    // one, chosen by the switch
	GroupTypeIndirect                  // the only one
	GroupTypeFF                        // the first that is live (fast failover)
)

// Bucket is a set of actions of a group (struct ofp_bucket). Set WatchPort to PortAny and WatchGroup to GroupAny
// unless the group is of GroupTypeFF.
type Bucket struct {
	Weight     uint16  // GroupTypeSelect: its part of the packets
	WatchPort  PortNo  // GroupTypeFF: the bucket is live if this port is, or PortAny
	WatchGroup GroupID // GroupTypeFF: the bucket is live if this group is, or GroupAny
	Actions    Actions
}

// Type is TypeGroupMod.
func (m *GroupMod) Type() Type { return TypeGroupMod }

func (m *GroupMod) layout(c *codec) {
	u16(c, &m.Command, "ofp_group_mod.command")
	u8(c, &m.Kind, "ofp_group_mod.type")
	c.pad(1)
	u32(c, &m.Group, "ofp_group_mod.group_id")
	list(c, &m.Buckets, (*codec).bucket)
}

func (c *codec) bucket(p *Bucket) {
	s := c.length(c.at(), "ofp_bucket.len")
	u16(c, &p.Weight, "ofp_bucket.weight")
	u32(c, &p.WatchPort, "ofp_bucket.watch_port")
	u32(c, &p.WatchGroup, "ofp_bucket.watch_group")
	c.pad(4)
	c.actions(&p.Actions)
	c.close(s)
}
