"""Reads OpenFlow 1.3 messages from standard input, parses each with os-ken, and writes a line for each to standard
output: the bytes to which os-ken serialises it, in hexadecimal, or what it raised.

os-ken parses what switches send and serialises what controllers send. For the other direction this program uses
os-ken's own structures: its parsers of matches, actions, buckets and bands, its serialisers of them, and its struct
formats for the fields around them.
"""

import struct
import sys
from unittest import mock

for name in ("oslo_config", "oslo_config.cfg"):  # os-ken imports them for programs that have options
    sys.modules[name] = mock.MagicMock()

from os_ken.lib import addrconv  # noqa: E402
from os_ken.ofproto import ofproto_common, ofproto_parser, ofproto_protocol  # noqa: E402
from os_ken.ofproto import ofproto_v1_3 as o  # noqa: E402
from os_ken.ofproto import ofproto_v1_3_parser as p  # noqa: E402

datapath = ofproto_protocol.ProtocolDesc(version=o.OFP_VERSION)


def oxm_id_serialize(self, serialize=p.OFPOxmId.serialize):
    """os-ken writes 0 as the length of each field, but reads it."""
    length = self.length
    buf = serialize(self)
    buf[3] = length
    return buf


p.OFPOxmId.serialize = oxm_id_serialize


def several(parser, buf, offset, end=None):
    """Structures from offset to the end."""
    found = []
    while offset < (len(buf) if end is None else end):
        s = parser(buf, offset)
        found.append(s)
        offset += s.length if hasattr(s, "length") and s.length is not None else s.len
    return found


def match(buf, offset):
    """The match at offset, and what follows it."""
    m = p.OFPMatch.parser(buf, offset)
    return m, offset + (m.length + 7) // 8 * 8


def wire(*structures):
    """Structures that serialise themselves into a buffer."""
    buf = bytearray()
    for s in structures:
        s.serialize(buf, len(buf))
    return bytes(buf)


# What controllers send: the fields are read, and os-ken serialises the message that they make.

def body(fmt, buf):
    return struct.unpack_from(fmt, buf, o.OFP_HEADER_SIZE)


def packet_out(buf):
    buffer_id, in_port, n = body(o.OFP_PACKET_OUT_PACK_STR, buf)
    end = o.OFP_PACKET_OUT_SIZE + n
    actions = several(p.OFPAction.parser, buf, o.OFP_PACKET_OUT_SIZE, end)
    return p.OFPPacketOut(datapath, buffer_id, in_port, actions, buf[end:] or None)


def port_mod(buf):
    port_no, hw_addr, config, mask, advertise = body(o.OFP_PORT_MOD_PACK_STR, buf)
    return p.OFPPortMod(datapath, port_no, addrconv.mac.bin_to_text(hw_addr), config, mask, advertise)


def meter_mod(buf):
    command, flags, meter_id = body(o.OFP_METER_MOD_PACK_STR, buf)
    bands = several(p.OFPMeterBandHeader.parser, buf, o.OFP_METER_MOD_SIZE)
    return p.OFPMeterMod(datapath, command, flags, meter_id, bands)


def group_mod(buf):
    command, type_, group_id = body(o.OFP_GROUP_MOD_PACK_STR, buf)
    return p.OFPGroupMod(datapath, command, type_, group_id, several(p.OFPBucket.parser, buf, o.OFP_GROUP_MOD_SIZE))


def set_async(buf):
    v = body(o.OFP_ASYNC_CONFIG_PACK_STR, buf)
    return p.OFPSetAsync(datapath, v[0:2], v[2:4], v[4:6])


def bundle_add(buf):
    bundle_id, flags = struct.unpack_from(o.ONF_BUNDLE_ADD_MSG_PACK_STR, buf, o.OFP_EXPERIMENTER_HEADER_SIZE)
    return p.ONFBundleAddMsg(datapath, bundle_id, flags, message(buf[o.OFP_EXPERIMENTER_HEADER_SIZE + 8:]), [])


def experimenter(buf):
    if body(o.OFP_EXPERIMENTER_HEADER_PACK_STR, buf) == (ofproto_common.ONF_EXPERIMENTER_ID, o.ONF_ET_BUNDLE_ADD_MESSAGE):
        return bundle_add(buf)
    return parsed(buf)


def flow_request(cls):
    def make(flags, buf):
        table_id, out_port, out_group, cookie, cookie_mask = struct.unpack_from(o.OFP_FLOW_STATS_REQUEST_0_PACK_STR, buf, 16)
        m, _ = match(buf, 16 + o.OFP_FLOW_STATS_REQUEST_0_SIZE)
        return cls(datapath, flags, table_id, out_port, out_group, cookie, cookie_mask, m)
    return make


def plain_request(cls, fmt="!"):
    return lambda flags, buf: cls(datapath, flags, *struct.unpack_from(fmt, buf, 16))


def experimenter_request(flags, buf):
    e = p.OFPExperimenterMultipart.parser(buf, 16)
    return p.OFPExperimenterStatsRequest(datapath, flags, e.experimenter, e.exp_type, e.data)


requests = {
    o.OFPMP_DESC: plain_request(p.OFPDescStatsRequest),
    o.OFPMP_FLOW: flow_request(p.OFPFlowStatsRequest),
    o.OFPMP_AGGREGATE: flow_request(p.OFPAggregateStatsRequest),
    o.OFPMP_TABLE: plain_request(p.OFPTableStatsRequest),
    o.OFPMP_PORT_STATS: plain_request(p.OFPPortStatsRequest, o.OFP_PORT_STATS_REQUEST_PACK_STR),
    o.OFPMP_QUEUE: plain_request(p.OFPQueueStatsRequest, o.OFP_QUEUE_STATS_REQUEST_PACK_STR),
    o.OFPMP_GROUP: plain_request(p.OFPGroupStatsRequest, o.OFP_GROUP_STATS_REQUEST_PACK_STR),
    o.OFPMP_GROUP_DESC: plain_request(p.OFPGroupDescStatsRequest),
    o.OFPMP_GROUP_FEATURES: plain_request(p.OFPGroupFeaturesStatsRequest),
    o.OFPMP_METER: plain_request(p.OFPMeterStatsRequest, o.OFP_METER_MULTIPART_REQUEST_PACK_STR),
    o.OFPMP_METER_CONFIG: plain_request(p.OFPMeterConfigStatsRequest, o.OFP_METER_MULTIPART_REQUEST_PACK_STR),
    o.OFPMP_METER_FEATURES: plain_request(p.OFPMeterFeaturesStatsRequest),
    o.OFPMP_TABLE_FEATURES: lambda flags, buf: p.OFPTableFeaturesStatsRequest(
        datapath, flags, several(p.OFPTableFeaturesStats.parser, buf, 16)),
    o.OFPMP_PORT_DESC: plain_request(p.OFPPortDescStatsRequest),
    o.OFPMP_EXPERIMENTER: experimenter_request,
}


def multipart_request(buf):
    type_, flags = body(o.OFP_MULTIPART_REQUEST_PACK_STR, buf)
    return requests[type_](flags, buf)


messages = {
    o.OFPT_EXPERIMENTER: experimenter,
    o.OFPT_FEATURES_REQUEST: lambda buf: p.OFPFeaturesRequest(datapath),
    o.OFPT_GET_CONFIG_REQUEST: lambda buf: p.OFPGetConfigRequest(datapath),
    o.OFPT_SET_CONFIG: lambda buf: p.OFPSetConfig(datapath, *body(o.OFP_SWITCH_CONFIG_PACK_STR, buf)),
    o.OFPT_PACKET_OUT: packet_out,
    o.OFPT_GROUP_MOD: group_mod,
    o.OFPT_PORT_MOD: port_mod,
    o.OFPT_TABLE_MOD: lambda buf: p.OFPTableMod(datapath, *body(o.OFP_TABLE_MOD_PACK_STR, buf)),
    o.OFPT_MULTIPART_REQUEST: multipart_request,
    o.OFPT_BARRIER_REQUEST: lambda buf: p.OFPBarrierRequest(datapath),
    o.OFPT_QUEUE_GET_CONFIG_REQUEST: lambda buf: p.OFPQueueGetConfigRequest(
        datapath, *body(o.OFP_QUEUE_GET_CONFIG_REQUEST_PACK_STR, buf)),
    o.OFPT_ROLE_REQUEST: lambda buf: p.OFPRoleRequest(datapath, *body(o.OFP_ROLE_REQUEST_PACK_STR, buf)),
    o.OFPT_GET_ASYNC_REQUEST: lambda buf: p.OFPGetAsyncRequest(datapath),
    o.OFPT_SET_ASYNC: set_async,
    o.OFPT_METER_MOD: meter_mod,
}


# What switches send: os-ken parses it, and its fields are written.

def pack(fmt, *values):
    return struct.pack(fmt, *values)


def hello(m):
    out = b""
    for e in m.elements:
        bitmaps = [0] * (max(e.versions) // 32 + 1)
        for v in e.versions:
            bitmaps[v // 32] |= 1 << v % 32
        e = pack(o.OFP_HELLO_ELEM_VERSIONBITMAP_HEADER_PACK_STR, e.type, 4 + 4 * len(bitmaps)) + pack(
            "!%dI" % len(bitmaps), *bitmaps)
        out += e + bytes(-len(e) % 8)
    return out


def port(v):
    return pack(o.OFP_PORT_PACK_STR, v.port_no, addrconv.mac.text_to_bin(v.hw_addr), *v[2:])


def queue(q):
    properties = b"".join(
        pack(o.OFP_QUEUE_PROP_HEADER_PACK_STR, v.property, v.len) + pack(o.OFP_QUEUE_PROP_MIN_RATE_PACK_STR, v.rate)
        for v in q.properties)
    return pack(o.OFP_PACKET_QUEUE_PACK_STR, q.queue_id, q.port, q.len) + properties


def packet_in(m):
    return pack(o.OFP_PACKET_IN_PACK_STR, m.buffer_id, m.total_len, m.reason, m.table_id, m.cookie) + wire(
        m.match) + bytes(2) + m.data


def flow_removed(m):
    return pack(o.OFP_FLOW_REMOVED_PACK_STR0, m.cookie, m.priority, m.reason, m.table_id, m.duration_sec, m.duration_nsec,
                m.idle_timeout, m.hard_timeout, m.packet_count, m.byte_count) + wire(m.match)


def flow_stats(s):
    return pack(o.OFP_FLOW_STATS_0_PACK_STR, s.length, s.table_id, s.duration_sec, s.duration_nsec, s.priority,
                s.idle_timeout, s.hard_timeout, s.flags, s.cookie, s.packet_count, s.byte_count) + wire(
                    s.match) + b"".join(wire(i) for i in s.instructions)


def group_stats(s):
    return pack(o.OFP_GROUP_STATS_PACK_STR, s.length, s.group_id, s.ref_count, s.packet_count, s.byte_count,
                s.duration_sec, s.duration_nsec) + b"".join(
                    pack(o.OFP_BUCKET_COUNTER_PACK_STR, b.packet_count, b.byte_count) for b in s.bucket_stats)


def group_desc(s):
    return pack(o.OFP_GROUP_DESC_STATS_PACK_STR, s.length, s.type, s.group_id) + wire(*s.buckets)


def meter_stats(s):
    return pack(o.OFP_METER_STATS_PACK_STR, s.meter_id, s.len, s.flow_count, s.packet_in_count, s.byte_in_count,
                s.duration_sec, s.duration_nsec) + b"".join(
                    pack(o.OFP_METER_BAND_STATS_PACK_STR, b.packet_band_count, b.byte_band_count) for b in s.band_stats)


def meter_config(s):
    return pack(o.OFP_METER_CONFIG_PACK_STR, s.length, s.flags, s.meter_id) + wire(*s.bands)


def group_features(s):
    return pack(o.OFP_GROUP_FEATURES_PACK_STR, s.types, s.capabilities, *s.max_groups, *s.actions)


def fields(fmt):
    return lambda s: pack(fmt, *s)


parts = {
    o.OFPMP_DESC: fields(o.OFP_DESC_PACK_STR),
    o.OFPMP_FLOW: flow_stats,
    o.OFPMP_AGGREGATE: fields(o.OFP_AGGREGATE_STATS_REPLY_PACK_STR),
    o.OFPMP_TABLE: fields(o.OFP_TABLE_STATS_PACK_STR),
    o.OFPMP_PORT_STATS: fields(o.OFP_PORT_STATS_PACK_STR),
    o.OFPMP_QUEUE: fields(o.OFP_QUEUE_STATS_PACK_STR),
    o.OFPMP_GROUP: group_stats,
    o.OFPMP_GROUP_DESC: group_desc,
    o.OFPMP_GROUP_FEATURES: group_features,
    o.OFPMP_METER: meter_stats,
    o.OFPMP_METER_CONFIG: meter_config,
    o.OFPMP_METER_FEATURES: fields(o.OFP_METER_FEATURES_PACK_STR),
    o.OFPMP_TABLE_FEATURES: lambda s: s.serialize(),
    o.OFPMP_PORT_DESC: port,
}


def multipart_reply(m):
    body = m.body if isinstance(m.body, list) else [m.body]
    return pack(o.OFP_MULTIPART_REPLY_PACK_STR, m.type, m.flags) + b"".join(parts[m.type](s) for s in body)


replies = {
    o.OFPT_HELLO: hello,
    o.OFPT_FEATURES_REPLY: lambda m: pack(o.OFP_SWITCH_FEATURES_PACK_STR, m.datapath_id, m.n_buffers, m.n_tables,
                                          m.auxiliary_id, m.capabilities, m._reserved),
    o.OFPT_GET_CONFIG_REPLY: lambda m: pack(o.OFP_SWITCH_CONFIG_PACK_STR, m.flags, m.miss_send_len),
    o.OFPT_PACKET_IN: packet_in,
    o.OFPT_FLOW_REMOVED: flow_removed,
    o.OFPT_PORT_STATUS: lambda m: pack("!B7x", m.reason) + port(m.desc),
    o.OFPT_MULTIPART_REPLY: multipart_reply,
    o.OFPT_QUEUE_GET_CONFIG_REPLY: lambda m: pack(o.OFP_QUEUE_GET_CONFIG_REPLY_PACK_STR, m.port) + b"".join(
        queue(q) for q in m.queues),
    o.OFPT_ROLE_REPLY: lambda m: pack(o.OFP_ROLE_REQUEST_PACK_STR, m.role, m.generation_id),
    o.OFPT_GET_ASYNC_REPLY: lambda m: pack(o.OFP_ASYNC_CONFIG_PACK_STR, *m.packet_in_mask, *m.port_status_mask,
                                           *m.flow_removed_mask),
}


def parsed(buf):
    version, msg_type, msg_len, xid = ofproto_parser.header(buf)
    m = p.msg_parser(datapath, version, msg_type, msg_len, xid, buf)
    m.xid = None
    return m


def message(buf):
    """The message without its transaction id."""
    return messages.get(buf[1], parsed)(buf)


def judge(buf):
    version, msg_type, _, xid = ofproto_parser.header(buf)
    m = message(buf)
    if msg_type in replies:
        out = replies[msg_type](m)
        return struct.pack(o.OFP_HEADER_PACK_STR, version, msg_type, len(out) + 8, xid) + out
    m.xid = xid
    m.serialize()
    return bytes(m.buf)


data = sys.stdin.buffer.read()
while data:
    length = struct.unpack_from("!H", data, 2)[0]
    try:
        print(judge(data[:length]).hex())
    except Exception as e:  # each line answers one message
        print("%s: %s" % (type(e).__name__, str(e).replace("\n", " ")))
    data = data[length:]
