# Sourced by deploy/up and deploy/test with $root set: makes $root/.venv and installs a lock into it when it changed.
# POSIX sh; needs python3 >= 3.11 with the venv module.

say() { printf '%s\n' "$*" >&2; }

die() {
    say "clawpanel: $*"
    exit 2
}

find_python() {
    for candidate in "${CLAWPANEL_PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# make_venv LOCK: LOCK is requirements.txt or requirements-dev.txt (which holds all of the former).
make_venv() {
    lock="$root/$1"
    stamp="$root/.venv/.installed-$1"
    python=$(find_python) || die "Python 3.11, 3.12 or 3.13 is needed; set CLAWPANEL_PYTHON to its path."
    digest=$("$python" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$lock") ||
        die "$lock cannot be read."
    if [ -x "$root/.venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
        return 0
    fi
    if ! "$root/.venv/bin/python" -c 'import pip' 2>/dev/null; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            die "This Python has no venv module. On Debian or Ubuntu: apt-get install python3-venv"
        say "Making $root/.venv with $("$python" --version)."
        "$python" -m venv --clear "$root/.venv" || die "The virtual environment could not be made in $root/.venv."
    fi
    say "Installing the packages of $1 (once; about 100 MB are fetched)."
    rm -f "$root"/.venv/.installed-*
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
        --requirement "$lock" || die "The packages could not be installed; see above. Is PyPI in reach?"
    printf '%s\n' "$digest" >"$stamp"
    if [ "$1" = requirements-dev.txt ]; then
        # Everything of the product's own lock is in there too.
        "$python" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' \
            "$root/requirements.txt" >"$root/.venv/.installed-requirements.txt"
    fi
}
