package program

import (
	"headgate.dev/headgate/fabric/openflow"
)

// Program is the flows, groups and meters that a switch should have.
type Program struct {
	Flows  []Flow
	Groups []Group
	Meters []Meter
}

// Flow is a flow. Two flows of a program must not have the same table, priority and match.
type Flow struct {
	Table        openflow.TableID
	Priority     uint16
	Match        openflow.Match
	Cookie       uint64
	IdleTimeout  uint16 // seconds without packets until the switch deletes the flow, or 0
	HardTimeout  uint16 // seconds until the switch deletes the flow, or 0
	Flags        openflow.FlowFlags
	Instructions openflow.Instructions
	// Why describes the rule that the flow is for, as an infinitive: "deliver to host 02:00:00:00:00:01".
	Why string
}

// Group is a group.
type Group struct {
	ID      openflow.GroupID
	Kind    openflow.GroupType
	Buckets []openflow.Bucket
	Why     string
}

// Meter is a meter.
type Meter struct {
	ID    openflow.MeterID
	Flags openflow.MeterFlags
	Bands []openflow.Band
	Why   string
}

// Ours says which objects of a switch a controller manages.
type Ours struct {
	// Cookie and CookieMask: flows whose cookie is Cookie under the mask.
	Cookie, CookieMask uint64
	// Groups and Meters are the first and last number of ours.
	Groups [2]openflow.GroupID
	Meters [2]openflow.MeterID
}

func (o Ours) flow(cookie uint64) bool { return cookie&o.CookieMask == o.Cookie&o.CookieMask }

func (o Ours) group(id openflow.GroupID) bool { return o.Groups[0] <= id && id <= o.Groups[1] }

func (o Ours) meter(id openflow.MeterID) bool { return o.Meters[0] <= id && id <= o.Meters[1] }

// State is what a switch has, as it has reported it.
type State struct {
	Flows  []openflow.FlowStats
	Groups []openflow.GroupDesc
	Meters []openflow.MeterConfig
}
