"""The packet rules as text, and which name servers a run may ask."""

import socket
import subprocess
from pathlib import Path

import pytest

from apps.engine.firewall import Firewall, name_servers, rules_text


def test_the_host_is_closed_but_for_answers_and_the_demo_site():
    text = rules_text(dns=["10.0.0.53"], open_addresses=["172.18.0.1:8099"], limit_connections=True)
    to_host = [line for line in text.splitlines() if line.startswith("-A CLAW-RUNS-IN")]
    assert to_host == [
        "-A CLAW-RUNS-IN -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
        "-A CLAW-RUNS-IN -d 172.18.0.1/32 -p tcp --dport 8099 -j ACCEPT",
        "-A CLAW-RUNS-IN -d 10.0.0.53/32 -p udp --dport 53 -j ACCEPT",
        "-A CLAW-RUNS-IN -d 10.0.0.53/32 -p tcp --dport 53 -j ACCEPT",
        "-A CLAW-RUNS-IN -j REJECT --reject-with icmp-admin-prohibited",
    ]


def test_private_networks_metadata_and_mail_are_rejected_after_dns_is_allowed():
    lines = rules_text(dns=["10.0.0.53"], open_addresses=[""], limit_connections=False).splitlines()
    dns = lines.index("-A CLAW-RUNS-FWD -d 10.0.0.53/32 -p udp --dport 53 -j RETURN")
    private = lines.index("-A CLAW-RUNS-FWD -d 10.0.0.0/8 -j REJECT --reject-with icmp-admin-prohibited")
    assert dns < private
    assert any("169.254.0.0/16" in line for line in lines)
    assert any("--dports 25,465,587" in line for line in lines)
    assert not any("connlimit" in line for line in lines)
    assert lines[0] == "*filter"
    assert lines[-1] == "COMMIT"


def test_name_servers_are_those_beyond_loopback(tmp_path: Path):
    resolv = tmp_path / "resolv.conf"
    resolv.write_text(
        "search test\nnameserver 127.0.0.53\nnameserver 10.0.0.53\nnameserver fe80::1%eth0\nnameserver\n"
        "nameserver nonsense\nnameserver 10.0.0.53\n"
    )
    assert name_servers([resolv, tmp_path / "missing"]) == ("10.0.0.53",)


def test_where_rules_cannot_be_set_there_is_a_warning(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "only root" in Firewall("clawruns0").apply()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "iptables is not installed" in Firewall("clawruns0").apply()


@pytest.mark.docker
def test_the_demo_site_of_another_panel_stays_open_while_it_lives():
    with socket.create_server(("127.0.0.1", 0)) as demo:
        address = f"127.0.0.1:{demo.getsockname()[1]}"
        assert Firewall("clawtest0", open_address=address).apply() == ""
        assert Firewall("clawtest0").apply() == ""
        assert opened(address)
    assert Firewall("clawtest0").apply() == ""
    assert not opened(address)


def opened(address: str) -> bool:
    rules = subprocess.run(["iptables", "-S", "CLAW-RUNS-IN"], capture_output=True, text=True, check=True).stdout
    return f"--dport {address.rpartition(':')[2]} " in rules


@pytest.fixture(autouse=True)
def without_jumps():
    yield
    for chain, target in (("INPUT", "CLAW-RUNS-IN"), ("DOCKER-USER", "CLAW-RUNS-FWD")):
        subprocess.run(["iptables", "-D", chain, "-i", "clawtest0", "-j", target], capture_output=True, check=False)
