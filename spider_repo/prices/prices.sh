#!/bin/sh
# A price list in CSV, one item a line. No Python: sh, awk, and perl for what the shell has not (HTTP and JSON).
set -u

here=$(dirname "$0")
url=$(perl "$here/param.pl" start_url) || exit 2
max_price=$(perl "$here/param.pl" max_price) || exit 2
if [ -z "$url" ]; then
    if [ -z "${CLAW_DEMO_SITE:-}" ]; then
        echo 'ERROR: Give a start_url: there is no demo site.' >&2
        exit 2
    fi
    url=${CLAW_DEMO_SITE%/}/prices.csv
fi

records=${CLAW_RECORDS:-/dev/stdout}
list=${TMPDIR:-/tmp}/prices.$$.csv
trap 'rm -f "$list"' EXIT
trap 'exit 143' TERM

echo "INFO: Reading $url"
perl "$here/fetch.pl" "$url" >"$list" || exit 1

# One line of awk's output is one item, appended whole by one write (printf, because echo may eat backslashes).
awk -v max="$max_price" -f "$here/items.awk" "$list" | {
    count=0
    while IFS= read -r item; do
        printf '%s\n' "$item" >>"$records" || exit 1
        count=$((count + 1))
    done
    echo "progress {\"done\":$count,\"total\":$count}" >>"$records"
    echo "output {\"prices\":$count}" >>"$records"
    echo "INFO: $count prices"
    [ "$count" -gt 0 ] || { echo 'ERROR: The list holds no prices.' >&2; exit 1; }
}
