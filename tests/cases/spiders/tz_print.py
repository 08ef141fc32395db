# Right: the spider sees UTC unless the spider's own setting says otherwise, and the slot passed to it is the nominal one.
import datetime, os, time

print(
    time.tzname,
    datetime.datetime.now().isoformat(),
    os.environ.get("TZ"),
    {k: v for k, v in os.environ.items() if "SLOT" in k.upper()},
    flush=True,
)
