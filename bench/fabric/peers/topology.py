"""Prints what os-ken's topology application knows, a line for each change: the switches, the links, and the ports without one."""

import json
import time

from os_ken.base import app_manager
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_3
from os_ken.topology import api


def port(p):
    return "%016x/%d" % (p.dpid, p.port_no)


class Topology(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        hub.spawn(self.watch)

    def watch(self):
        before = None
        while True:
            switches, links = api.get_all_switch(self), api.get_all_link(self)
            linked = {port(link.src) for link in links}
            now = {
                "switches": {"%016x" % s.dp.id: True for s in switches},
                "links": {port(link.src) + "->" + port(link.dst): True for link in links},
                "hosts": {port(p): True for s in switches for p in s.ports if p.port_no < 0xffffff00 and port(p) not in linked},
            }
            if now != before:
                print(json.dumps({"at": time.monotonic_ns(), "shown": now}), flush=True)
                before = now
            hub.sleep(0.02)
