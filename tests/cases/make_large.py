"""Writes large hostile data into the folder given as argument 1 (about 60 MB)."""

import json, os, sys

o = sys.argv[1]
os.makedirs(o, exist_ok=True)


def w(n, b):
    open(os.path.join(o, n), "wb").write(b)


w("line_20mb.log", b"z" * (20 << 20) + b"\nafter\n")
w("item_5mb.jsonl", json.dumps({"html": "<p>" * 1700000}).encode() + b"\n")
w(
    "item_number_amplify.jsonl", b'{"a":[' + b",".join([b"1e131071"] * 1000) + b"]}\n"
)  # 9 KB that PostgreSQL jsonb prints as 131 MB
w("item_deep_100k.jsonl", b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}\n")
w("item_100k_keys.jsonl", json.dumps({"k%d" % i: i for i in range(100000)}).encode() + b"\n")
w("item_key_1mb.jsonl", json.dumps({"k" * (1 << 20): 1}).encode() + b"\n")
with open(os.path.join(o, "items_200k.jsonl"), "w") as f:
    for i in range(200000):
        f.write(
            json.dumps(
                {"n": i, "title": "t%d" % i, "price": i / 7, "zh": "\u4e2d\u6587", "pad": "x" * 60}, ensure_ascii=False
            )
            + "\n"
        )
print(os.listdir(o))
