package oftest

import (
	"cmp"

	"headgate.dev/headgate/fabric/openflow"
)

// multipart answers a multipart request (section 7.3.5), in several parts if the reply is long.
func (c *channel) multipart(xid uint32, m *openflow.MultipartRequest) *openflow.Error {
	s := c.s
	one := func(b openflow.ReplyBody) { c.send(xid, &openflow.MultipartReply{Body: b}) }
	switch b := m.Body.(type) {
	case *openflow.DescRequest:
		d := s.options.Desc
		one(&d)
	case *openflow.PortDescRequest:
		var all []openflow.Port
		for _, p := range s.sortedPorts() {
			all = append(all, p.desc())
		}
		reply(c, xid, all, func(p []openflow.Port) openflow.ReplyBody { return &openflow.PortDescReply{Ports: p} })
	case *openflow.FlowStatsRequest:
		match, err := newMatcher(b.Match)
		if err != nil {
			return err
		}
		reply(c, xid, s.flowStats(b.FlowFilter, match), func(p []openflow.FlowStats) openflow.ReplyBody { return &openflow.FlowStatsReply{Flows: p} })
	case *openflow.AggregateRequest:
		match, err := newMatcher(b.Match)
		if err != nil {
			return err
		}
		one(s.aggregate(b.FlowFilter, match))
	case *openflow.TableStatsRequest:
		reply(c, xid, s.tableStats(), func(p []openflow.TableStats) openflow.ReplyBody { return &openflow.TableStatsReply{Tables: p} })
	case *openflow.PortStatsRequest:
		var all []openflow.PortStats
		for _, p := range s.sortedPorts() {
			if b.Port == p.no || b.Port == openflow.PortAny {
				all = append(all, p.stats())
			}
		}
		reply(c, xid, all, func(p []openflow.PortStats) openflow.ReplyBody { return &openflow.PortStatsReply{Ports: p} })
	case *openflow.QueueStatsRequest:
		return c.queueStats(xid, b)
	case *openflow.TableFeaturesList:
		if len(b.Tables) > 0 || m.More {
			return refuse(openflow.ErrTableFeaturesFailed, openflow.TableFeaturesEPerm)
		}
		reply(c, xid, s.tableFeatures(), func(p []openflow.TableFeatures) openflow.ReplyBody { return &openflow.TableFeaturesList{Tables: p} })
	case *openflow.ExperimenterMultipart:
		return refuse(openflow.ErrBadRequest, openflow.RequestBadExperimenter)
	default:
		return c.multipartOfGroups(xid, m.Body)
	}
	return nil
}

// multipartOfGroups answers the requests for groups and meters. A switch without any refuses them.
func (c *channel) multipartOfGroups(xid uint32, body openflow.RequestBody) *openflow.Error {
	s := c.s
	one := func(b openflow.ReplyBody) { c.send(xid, &openflow.MultipartReply{Body: b}) }
	unsupported := refuse(openflow.ErrBadRequest, openflow.RequestBadMultipart)
	missing := func(id openflow.MeterID) bool { return id != openflow.MeterAll && s.meters[id] == nil }
	switch body.(type) {
	case *openflow.GroupStatsRequest, *openflow.GroupDescRequest, *openflow.GroupFeaturesRequest:
		if s.limits.Groups == 0 {
			return unsupported
		}
	case *openflow.MeterStatsRequest, *openflow.MeterConfigRequest, *openflow.MeterFeaturesRequest:
		if s.limits.Meters == 0 {
			return unsupported
		}
	}
	switch b := body.(type) {
	case *openflow.GroupStatsRequest:
		reply(c, xid, s.groupStats(b.Group), func(p []openflow.GroupStats) openflow.ReplyBody { return &openflow.GroupStatsReply{Groups: p} })
	case *openflow.GroupDescRequest:
		reply(c, xid, s.groupDescs(), func(p []openflow.GroupDesc) openflow.ReplyBody { return &openflow.GroupDescReply{Groups: p} })
	case *openflow.GroupFeaturesRequest:
		one(s.groupFeatures())
	case *openflow.MeterStatsRequest:
		if missing(b.Meter) {
			return refuse(openflow.ErrMeterModFailed, openflow.MeterModUnknownMeter)
		}
		reply(c, xid, s.meterStats(b.Meter), func(p []openflow.MeterCounters) openflow.ReplyBody { return &openflow.MeterStatsReply{Meters: p} })
	case *openflow.MeterConfigRequest:
		if missing(b.Meter) {
			return refuse(openflow.ErrMeterModFailed, openflow.MeterModUnknownMeter)
		}
		var all []openflow.MeterConfig
		for _, m := range s.sortedMeters() {
			if b.Meter == m.id || b.Meter == openflow.MeterAll {
				all = append(all, m.config())
			}
		}
		reply(c, xid, all, func(p []openflow.MeterConfig) openflow.ReplyBody { return &openflow.MeterConfigReply{Meters: p} })
	case *openflow.MeterFeaturesRequest:
		one(s.meterFeatures())
	default:
		return unsupported
	}
	return nil
}

// reply sends a list, divided into parts.
func reply[T any](c *channel, xid uint32, all []T, body func([]T) openflow.ReplyBody) {
	limit := cmp.Or(c.s.options.ReplyBytes, defaultReply)
	start, size := 0, 0
	for i := range all {
		b, _ := openflow.Append(nil, xid, &openflow.MultipartReply{Body: body(all[i : i+1])})
		if size+len(b) > limit && i > start {
			c.send(xid, &openflow.MultipartReply{More: true, Body: body(all[start:i])})
			start, size = i, 0
		}
		size += len(b)
	}
	c.send(xid, &openflow.MultipartReply{Body: body(all[start:])})
}
