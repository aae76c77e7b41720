# Calls every operation of the API with the generated client, and prints a line for each call: the operation and
# the status of the response, then the fault if the client could not parse it. The environment has the service.
import datetime
import json
import os
import pathlib
import ssl
import sys
import time

from headgate import AuthenticatedClient, Client
from headgate.api.access import (
    confirm_restore, create_token, delete_session, delete_tenant, delete_token, get_restore, get_session, get_tenant, list_tenant_groups, list_tenants, list_tokens,
    login, put_tenant,
)
from headgate.api.groups import (
    delete_connection, delete_group, delete_interface, get_group, get_interface, get_policy, list_connections, list_groups,
    list_interfaces, patch_group, put_connection, put_group, put_interface, put_policy,
)
from headgate.api.hosts import (
    delete_collective, delete_host, get_collective, get_host, get_probe, list_collective_states, list_collectives, list_hosts,
    list_relay_ended, list_relays, put_collective, put_host, sign_certificate, start_probe, take_back,
)
from headgate.api.measurements import (
    delete_probe_schedule, get_probe_schedule, get_probe_state, list_probe_results, list_proposals, put_probe_schedule,
)
from headgate.api.network import (
    delete_network_config, get_network, get_network_config, get_network_link_history, get_network_path, get_network_trace, list_network_events,
    list_switch_flows, put_network_config, sign_switch_certificate,
)
from headgate.api.record import get_overview, get_rates, get_usage, list_audit, list_history, roll_back, watch_events, watch_live
from headgate.api.reservations import (
    create_reservation, delete_reservation, get_reservation, get_reservation_calendar, list_reservation_usage, list_reservations, put_reservation,
)
from headgate.api.service import get_health
from headgate.models import (
    Collective, Connection, Direction, DirectionName, Exclusions, Group, GroupPatch, Host, Interface, LoginBody, NetworkConfig, NetworkPortID,
    NewReservation, ProbeHost, ProbeMeasure, ProbeQuiet, ProbeQuietDaysItem, ProbeRequest, ProbeSchedule,
    ProbeScheduleMeasuresItem, Problem, ReservationEnd, ReservationRequest, RestoreConfirmation, Role, RollBackBody, Selector, SignCertificateBody, SignSwitchCertificateBody, Tenant, TokenRequest,
)
from headgate.types import UNSET

URL = os.environ["HEADGATE_URL"]
SECRET = os.environ["HEADGATE_TOKEN"]  # an operator's
HOST = os.environ["HEADGATE_HOST"]  # whose agent is connected; its device eth0 is not configured
REQUEST = pathlib.Path(os.environ["HEADGATE_REQUEST"]).read_text()  # the certificate request of an agent of the host new
TLS = ssl.create_default_context(cafile=os.environ["HEADGATE_CA"])


def by(token):
    return AuthenticatedClient(base_url=URL, token=token, verify_ssl=TLS, timeout=30)


def show(operation, status, fault=""):
    print(operation.__name__.rpartition(".")[2], status, *fault.split(), flush=True)


def same(model, text):
    """Whether a model has the content of a response; times are compared as times."""
    if isinstance(text, dict):
        return isinstance(model, dict) and model.keys() == text.keys() and all(same(model[key], text[key]) for key in text)
    if isinstance(text, list):
        return isinstance(model, list) and len(model) == len(text) and all(map(same, model, text))
    if model == text:
        return True
    try:
        return datetime.datetime.fromisoformat(model) == datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False


def fault_of(response):
    """Why the client did not parse a response into the type of the operation."""
    if response.status_code == 204:
        return ""
    if response.parsed is None:
        return "the response is not parsed"
    if isinstance(response.parsed, Problem):
        return f"{response.parsed.title}: {response.parsed.detail}"
    text = json.loads(response.content)
    return "" if same(response.parsed.to_dict(), text) else f"the response is {text}, parsed {response.parsed}"


def call(client, operation, *args, **kwargs):
    """Returns the parsed response."""
    try:
        response = operation.sync_detailed(*args, client=client, **kwargs)
    except Exception as error:  # of the client
        show(operation, 0, repr(error))
        raise
    fault = fault_of(response)
    show(operation, int(response.status_code), fault)
    if fault:
        sys.exit(1)  # the calls that follow need it
    return response.parsed


def refused(client, status, operation, *args, **kwargs):
    """Calls an operation that the service must reject with a status, and returns the problem."""
    response = operation.sync_detailed(*args, client=client, **kwargs)
    equal(operation.__name__, int(response.status_code), status)
    return response.parsed


def until(holds, client, operation, *args, **kwargs):
    """Calls an operation until the response meets a condition, for ten seconds."""
    for _ in range(100):
        parsed = call(client, operation, *args, **kwargs)
        if holds(parsed):
            break
        time.sleep(0.1)
    return parsed


def first(client, operation, **kwargs):
    """Opens a stream, and closes it after the first event. sync and sync_detailed read a whole response, and a
    stream has no end: the request is the generated one, and httpx reads the response."""
    with client.get_httpx_client().stream(**operation._get_kwargs(**kwargs)) as response:
        for line in response.iter_lines():
            if line.startswith("event: "):
                show(operation, response.status_code)
                return line.removeprefix("event: ")
    show(operation, response.status_code, "the stream has no event")
    sys.exit(1)


def equal(what, has, want):
    if has != want:
        raise SystemExit(f"{what}: {has!r}, want {want!r}")


operator = by(SECRET)
anyone = Client(base_url=URL, verify_ssl=TLS, timeout=30)

# Service and access.
call(anyone, get_health)
call(anyone, login, body=LoginBody(token=SECRET))
equal("the role", call(operator, get_session).role, Role.OPERATOR)
call(operator, put_tenant, "shop", body=Tenant(), dry_run=True)
equal("the problem", refused(operator, 404, get_tenant, "shop").status, 404)
call(operator, put_tenant, "shop", body=Tenant(description="the web shop", requests_per_second=500))
call(operator, get_tenant, "shop")
call(operator, list_tenants, limit=10)
token = call(operator, create_token, body=TokenRequest(name="program", role=Role.TENANT, tenant="shop", lifetime="1h"))
call(operator, list_tokens)
equal("tokens of the backup", call(operator, get_restore).tokens, [])
call(operator, confirm_restore, body=RestoreConfirmation())
call(operator, take_back)
shop = by(token.token)

# Hosts.
call(operator, put_host, "new", body=Host(description="in rack 4"))
join = call(operator, create_token, body=TokenRequest(name="join", role=Role.AGENT, host="new"))
call(by(join.token), sign_certificate, "new", body=SignCertificateBody(request=REQUEST))
equal("connected", call(operator, get_host, HOST).connected, True)
equal("hosts", HOST in [h.name for h in call(operator, list_hosts).items], True)

# Interfaces, groups and connections.
OUT = (HOST, "eth0", DirectionName.OUT)
matches = [Selector(dst=["10.1.0.0/16"], vlan=[7, "100-199"], not_=Exclusions(dport=["22"])), Selector(dst=["10.2.0.0/16"])]
groups = [Group(name="shop", guarantee="40%", tenant="shop", match=matches), Group(name="rest", guarantee="10%", default=True)]
call(operator, put_interface, HOST, "eth0", body=Interface(out=Direction(limit="100Mbit", groups=groups)))
call(operator, get_interface, HOST, "eth0")
call(operator, list_interfaces, HOST)
equal("the tenant's groups", [g.group for g in call(shop, list_tenant_groups, "shop").items], ["shop"])
call(shop, put_group, *OUT, "shop/rest", body=Group(default=True))
call(shop, put_group, *OUT, "shop/backup", body=Group(guarantee="10Mbit", ceiling="30Mbit", match=[Selector(dport=["873"])]))
equal("the groups", [g.path for g in call(shop, list_groups, *OUT).items], ["shop", "shop/rest", "shop/backup"])
call(shop, get_group, *OUT, "shop/backup")
changed = call(shop, patch_group, *OUT, "shop/backup", body=GroupPatch(guarantee="20Mbit", ceiling=None), if_match="*", idempotency_key="once")
equal("the guarantee and the ceiling", (changed.guaranteed_bps, changed.ceiling), (20_000_000, UNSET))
equal("the problem", refused(shop, 412, patch_group, *OUT, "shop/backup", body=GroupPatch(guarantee="30Mbit"), if_match='"former"').status, 412)
CONNECTION = "tcp 10.0.0.1:55000 10.2.0.2:873"
call(shop, put_connection, HOST, "eth0", CONNECTION, body=Connection(group="shop/backup"))
equal("the connections", [c.group for c in call(shop, list_connections, HOST, "eth0").items], ["shop/backup"])
call(shop, delete_connection, HOST, "eth0", CONNECTION)
call(shop, delete_group, *OUT, "shop/backup")

# Files.
policy = call(operator, get_policy, HOST)
call(operator, put_policy, HOST, body=policy)

# Connection sets.
call(operator, put_collective, HOST, "database", body=Collective(document="kind: Collective\nname: database\nmatch: [{dport: 5432}]\n"))
call(operator, get_collective, HOST, "database")
call(operator, list_collectives, HOST)
states = call(operator, list_collective_states, HOST).items
equal("the connections of the set", [[(c.learned_bps, c.rate_bps, c.window_cap_bytes, c.pacing_cap_bps) for c in s.connections] for s in states], [[(1_000_000, 2_000_000, 30_000, UNSET)]])
call(operator, delete_collective, HOST, "database")

# Relay agents.
equal("the streams of the relay agent", [r.exits[0].paths[0].open_streams for r in call(operator, list_relays, HOST).items], [1])
equal("the ended connections", [c.state for c in call(operator, list_relay_ended, HOST, "east").items], ["ended"])

# The network of switches.
network = call(operator, get_network)
equal("the uses of ports", [[p.use for p in s.ports] for s in network.switches], [["link", "faulty", "faulty"], ["link", "hosts", "none"]])
equal("the addresses of the host", network.hosts[0].addresses, ["10.9.0.1"])
path = call(operator, get_network_path, from_="10.9.0.1", to=network.switches[0].id)
equal("the path", [(h.switch, h.in_port) for h in path.hops], [("0000000000000002", 2), ("0000000000000001", 1)])
trace = call(operator, get_network_trace, packet="broadcast", from_="10.9.0.1")
equal("the hops of the trace", [h.switch for h in trace.hops], ["0000000000000002", "0000000000000001"])
equal("the first flow", call(operator, list_switch_flows, "0000000000000001").items[0].table_name, "port")
equal("the other end of the link", call(operator, get_network_link_history, "0000000000000001", 1).to, network.links[0].to)
equal("the first event", call(operator, list_network_events).items[0].kind, "switch-added")
document = "kind: Network\nname: campus\nunknown_switches: accept\nswitches: [{id: 1, name: one}]\nlisten: [{address: \"127.0.0.1:16653\", tls: false}]\n"
stored = call(operator, put_network_config, body=NetworkConfig(text=document))
equal("the configuration of the network", call(operator, get_network_config).text, stored.text)
signed = call(operator, sign_switch_certificate, body=SignSwitchCertificateBody(switches=["one"], request=REQUEST, days=30))
equal("the switches of the certificate", signed.switches, ["0000000000000001"])
call(operator, delete_network_config)

# Reservations.
ENDS = {"from_": ReservationEnd(host="10.9.0.1"), "to": ReservationEnd(prefix="10.8.0.0/16", at=NetworkPortID(switch="0000000000000001", port=2))}
made = call(operator, create_reservation, body=NewReservation(name="backup", rate="600Mbit", duration="1h", **ENDS))
equal("the rate", (made.rate_bps, made.state, [len(p.links) for p in made.paths]), (600_000_000, "active", [1]))
refusal = refused(operator, 409, create_reservation, body=NewReservation(name="more", rate="600Mbit", duration="1h", **ENDS)).refusal
equal("the most that fits", (refusal.reason, refusal.most.rate), ("no bandwidth", "400Mbit"))
longer = call(operator, put_reservation, "-", "backup", body=ReservationRequest(rate="700Mbit", duration="2h", **ENDS))
equal("the changed reservation", (longer.rate_bps, longer.generation), (700_000_000, 2))
equal("the reservation", call(operator, get_reservation, "-", "backup").request.rate, "700Mbit")
equal("the reservations", [r.name for r in call(operator, list_reservations, owner="-").items], ["backup"])
link = made.paths[0].links[0].from_
equal("the first step", call(operator, get_reservation_calendar, link=f"{link.switch}/{link.port}").steps[0].reserved_bps, 700_000_000)
equal("the usage of others", [u.name for u in call(operator, list_reservation_usage, owner="-", reservation="none").items], [])
call(operator, delete_reservation, "-", "backup")

# Measurements.
started = call(operator, start_probe, HOST, body=ProbeRequest(measure=ProbeMeasure.PATH, peer="10.0.0.9:8421"))
probe = until(lambda p: p.state == "done", operator, get_probe, HOST, started.id)
equal("the result", probe.result.to_dict(), {"peer": "10.0.0.9:8421"})
call(operator, put_probe_schedule, body=ProbeSchedule(
    measures=[ProbeScheduleMeasuresItem(measure=ProbeMeasure.TOKENRATE, every="6h")], budget="1GB", pairs=[[HOST, "new"]],
    hosts=[ProbeHost(host=HOST, links=["uplink"]), ProbeHost(host="new", address="10.0.0.2")],
    quiet=[ProbeQuiet(days=[ProbeQuietDaysItem.MON], from_="08:30", to="18:00")],
))
call(operator, get_probe_schedule)
call(operator, get_probe_state)
LONG_AGO = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
results = call(operator, list_probe_results, from_=HOST, since=LONG_AGO, newest=False)
equal("the results", [(r.answer.token_rate.rate.value, r.answer.sent_bytes) for r in results.items], [(1e8, 500_000)])
proposals = call(operator, list_proposals, HOST, dev="eth0", margin="2%")
equal("the proposals", [p.out.before_bps for p in proposals.items], [100_000_000])
call(operator, delete_probe_schedule)

# What was recorded.
rates = until(lambda r: r.items, shop, get_rates, HOST, dev="eth0", direction=DirectionName.OUT, group=["shop", "shop/rest"])
equal("the groups with rates", [g.group for g in rates.items], ["shop"])
equal("the overview", [h.host for h in call(operator, get_overview, names=True, host=[HOST, "new"]).items], ["new", HOST])
equal("the usage", [u.delivered_bytes for u in call(operator, get_usage, since=LONG_AGO, host=HOST).items], [7])
equal("an event", first(operator, watch_events), "hello")
first(operator, watch_live, see=["/v1/session", f"/v1/hosts/{HOST}/rates?dev=eth0"])
call(operator, list_audit, limit=5)
history = call(operator, list_history, HOST, "eth0")
revision = history.items[-1].revision
call(operator, get_interface, HOST, "eth0", revision=revision)
call(operator, roll_back, HOST, "eth0", body=RollBackBody(revision=revision))

# Deletion.
call(operator, delete_interface, HOST, "eth0")
call(operator, delete_host, "new")
call(operator, delete_token, token.id)
call(operator, delete_tenant, "shop")
call(operator, delete_session)
