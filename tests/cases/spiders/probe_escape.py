# Tries what a hostile spider would try first.  Right: every line says "no".
import ctypes, os, socket


def t(name, f):
    try:
        r = f()
        print("YES" if r is not False else "no ", name, flush=True)
    except BaseException as e:
        print("no ", name, type(e).__name__, flush=True)


st = {l.split(":")[0]: l.split(":")[1].strip() for l in open("/proc/self/status") if ":" in l}
print(
    "uid",
    os.getuid(),
    "CapEff",
    st["CapEff"],
    "CapBnd",
    st["CapBnd"],
    "NoNewPrivs",
    st["NoNewPrivs"],
    "Seccomp",
    st["Seccomp"],
    flush=True,
)
t("is root", lambda: os.getuid() == 0)
t("has capabilities", lambda: int(st["CapEff"], 16) != 0 or int(st["CapBnd"], 16) != 0)
t("no_new_privs missing", lambda: st["NoNewPrivs"] == "0")
t("seccomp off", lambda: st["Seccomp"] == "0")
t("docker socket", lambda: any(os.path.exists(p) for p in ("/var/run/docker.sock", "/run/docker.sock")))
t("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
t("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
for p in ("/etc/x", "/usr/lib/x", "/root/x", "/x", "/spider/x", "/app/x"):
    t("write " + p, lambda p=p: open(p, "w"))
libc = ctypes.CDLL(None, use_errno=True)
t("mount tmpfs", lambda: libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) == 0)
t("new user namespace", lambda: libc.unshare(0x10000000) == 0)
t("mknod", lambda: os.mknod("/tmp/devmem", 0o600 | 0o020000, os.makedev(1, 1)))
t("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "w"))
t("setuid(0)", lambda: os.setuid(0))
t(
    "see other processes",
    lambda: any(
        p.isdigit() and int(p) > 60 and b"celery" in open("/proc/%s/cmdline" % p, "rb").read()
        for p in os.listdir("/proc")
    ),
)
